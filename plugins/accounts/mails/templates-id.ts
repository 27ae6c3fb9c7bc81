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
}
