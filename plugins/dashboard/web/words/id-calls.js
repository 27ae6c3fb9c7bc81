/** Words of the daftar panggilan, of receipts, and of the charts of latency and error codes. */
export const calls = {
  "nav.receipt": "Kuitansi",
  "call.code": "Kode kesalahan",
  "call.stages": "Ke mana waktunya",
  "call.stages.of": "{took}: lihat ke mana waktu {id}",
  "call.firstToken": "Token pertama setelah",
  "stage.auth": "Kunci diperiksa",
  "stage.body": "Isi dibaca",
  "stage.plan": "Diperiksa dan direncanakan",
  "stage.tokenize": "Dipecah menjadi token",
  "stage.limits": "Batas dan saldo",
  "stage.hold": "Jumlah ditahan",
  "stage.queue": "Menunggu mesin",
  "stage.prefill": "Prompt dibaca",
  "stage.decode": "Jawaban ditulis",
  "stage.encode": "Dikodekan",
  "stage.denoise": "Gambar dibuat",
  "stage.images": "Gambar dibaca",
  "stage.audio": "Suara dibaca",
  "stage.png": "Gambar ditulis",
  "stage.safety": "Filter keamanan",
  "stage.search": "Dicari",
  "stage.rerank": "Diurutkan ulang",
  "stage.first": "Model, sampai token pertama",
  "stage.after": "Model, sisa jawaban",
  "stage.other": "Selebihnya",
  "receipt.saveJson": "Simpan sebagai JSON",
  "receipt.none":
    "Tidak ada panggilan {id} di akun Anda. Alamatnya mungkin tidak lengkap, atau panggilan itu milik akun lain. Permintaan yang ditolak tidak punya kuitansi.",
  "receipt.early": "Panggilan {id} belum selesai. Kuitansinya ada setelah selesai.",
  "receipt.back": "Ke daftar panggilan",
  "receipt.proves": "Yang dibuktikan kuitansi ini",
  "receipt.proves.signed":
    "Operator server ini menandatangani yang di atas: panggilan yang mana, apa yang dipakai, dengan harga berapa, berapa yang ditahan dan berapa biayanya. Siapa pun yang mengubah satu huruf merusak tanda tangannya, dan operator tidak dapat menyangkalnya.",
  "receipt.proves.evidence":
    "Di dalamnya juga ada digest permintaan, jawaban, berkas model dan pengaturannya. Dengan permintaannya, rakit replay menjalankan panggilan itu lagi dan membandingkan. Teksnya sendiri tidak ada di dalamnya.",
  "receipt.proves.plain":
    "Di dalamnya tidak ada digest permintaan dan jawaban: panggilan yang gagal atau terputus, dan endpoint selain chat, tidak memilikinya. Jadi isi jawabannya tidak dibuktikan.",
  "receipt.proves.check":
    "Siapa pun dapat memeriksanya tanpa server ini: berkas yang disimpan dan kunci publik sudah cukup.",
  "usage.measure.codes": "Kode kesalahan",
  "usage.measure.latency": "Latensi",
  "latency.byDay": "Latensi per hari",
  "latency.byHour": "Latensi per jam",
  "latency.none":
    "Tidak ada waktu pada rentang ini. Yang diukur adalah panggilan yang memakai model dan berhasil.",
  "latency.hint":
    "Dari permintaan sampai token pertamanya, dan sampai selesai. Separuh panggilan secepat median, 95 dari 100 secepat persentil ke-95; selisihnya paling banyak 10 %. Panggilan yang gagal dan baris batch tidak dihitung.",
  "latency.first_token_ms.median": "Token pertama, median",
  "latency.first_token_ms.p95": "Token pertama, persentil ke-95",
  "latency.duration_ms.median": "Seluruhnya, median",
  "latency.duration_ms.p95": "Seluruhnya, persentil ke-95",
  "codes.byDay": "Kode kesalahan per hari",
  "codes.byHour": "Kode kesalahan per jam",
  "codes.none": "Tidak ada yang gagal atau ditolak pada rentang ini.",
  "codes.hint":
    "Panggilan yang gagal dan permintaan yang ditolak, juga karena batas. client_closed: klien pergi. Daftar panggilan dapat disaring menurut kode.",
}
