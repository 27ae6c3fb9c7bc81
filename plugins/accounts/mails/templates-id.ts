import type { MailTemplates } from "./template.ts"

export const indonesian: MailTemplates = {
  verify: ({ site, forgot }, url) => ({
    subject: "Konfirmasi alamat email Anda",
    greeting: "Halo,",
    paragraphs: [
      `seseorang, semoga Anda sendiri, mendaftar di ${site} dengan alamat ini. Mohon konfirmasi bahwa alamat ini milik Anda.`,
    ],
    action: { label: "Konfirmasi alamat", url },
    notes: [
      "Tautan ini berlaku satu kali, dalam 48 jam; tautan yang lebih baru menggantikannya.",
      `Jika Anda mendaftar lebih dari sekali, atau tidak tahu kata sandi akun ini, buat dahulu kata sandi baru: ${forgot}`,
      "Jika itu bukan Anda, abaikan saja: akun tidak dapat dipakai tanpa konfirmasi ini.",
    ],
  }),
  registered: ({ site, signIn, forgot }) => ({
    subject: "Anda sudah memiliki akun",
    greeting: "Halo,",
    paragraphs: [
      `seseorang, mungkin Anda sendiri, mencoba mendaftar di ${site} dengan alamat ini. Anda sudah memiliki akun, dan tidak ada yang diubah pada akun itu.`,
    ],
    action: { label: "Masuk", url: signIn },
    notes: [
      `Jika Anda lupa kata sandi, buat yang baru: ${forgot}`,
      "Jika itu bukan Anda, Anda tidak perlu melakukan apa pun.",
    ],
  }),
  reset: ({ site }, url) => ({
    subject: "Buat kata sandi baru",
    greeting: "Halo,",
    paragraphs: [
      `seseorang, semoga Anda sendiri, meminta kata sandi baru untuk akun Anda di ${site}.`,
    ],
    action: { label: "Buat kata sandi baru", url },
    notes: [
      "Tautan ini berlaku satu kali, dalam 1 jam; tautan yang lebih baru menggantikannya.",
      "Jika itu bukan Anda, abaikan saja: kata sandi Anda tetap sama.",
    ],
  }),
  changed: ({ site, forgot }) => ({
    subject: "Kata sandi Anda telah diubah",
    greeting: "Halo,",
    paragraphs: [
      `kata sandi akun Anda di ${site} telah diubah, dan semua sesi yang sedang masuk telah diakhiri.`,
    ],
    notes: [
      `Jika itu bukan Anda, segera buat kata sandi baru dan periksa kunci API Anda: ${forgot}`,
    ],
  }),
  email: ({ site }, url) => ({
    subject: "Konfirmasi alamat email baru Anda",
    greeting: "Halo,",
    paragraphs: [
      `seseorang, semoga Anda sendiri, ingin memakai alamat ini untuk sebuah akun di ${site}. Mohon konfirmasi bahwa alamat ini milik Anda.`,
    ],
    action: { label: "Konfirmasi alamat", url },
    notes: [
      "Tautan ini berlaku satu kali, dalam 48 jam; tautan yang lebih baru menggantikannya.",
      "Jika itu bukan Anda, abaikan saja: alamat akun itu tidak berubah.",
    ],
  }),
  emailChanged: ({ site }, address) => ({
    subject: "Alamat email Anda telah diubah",
    greeting: "Halo,",
    paragraphs: [
      `alamat akun Anda di ${site} telah diubah menjadi ${address}. Alamat ini tidak dapat lagi dipakai untuk masuk.`,
    ],
    notes: ["Jika itu bukan Anda, segera hubungi operator."],
  }),
  deleted: ({ site }) => ({
    subject: "Akun Anda telah dihapus",
    greeting: "Halo,",
    paragraphs: [
      `akun Anda di ${site} telah dihapus: kunci API-nya dicabut, dan tidak ada lagi yang dapat masuk ke dalamnya.`,
    ],
    notes: ["Jika itu bukan Anda, segera hubungi operator."],
  }),
  lowBalance: ({ site, signIn }, { balance, threshold }) => ({
    subject: "Saldo Anda tinggal sedikit",
    greeting: "Halo,",
    paragraphs: [
      `saldo akun Anda di ${site} adalah ${balance}, di bawah ${threshold} yang Anda tetapkan untuk email ini. Panggilan yang tidak tercakup olehnya akan ditolak.`,
    ],
    action: { label: "Lihat akun", url: signIn },
    notes: ["Tidak ada email kedua sampai saldo kembali di atas batas itu."],
  }),
}
