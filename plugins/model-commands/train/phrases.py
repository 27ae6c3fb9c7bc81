"""The closed vocabulary: digits, numbers of a few digits, and commands, in three languages."""

import random

DIGITS = {
    "en": "zero one two three four five six seven eight nine".split(),
    "id": "nol satu dua tiga empat lima enam tujuh delapan sembilan".split(),
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve".split(),
}
# (verbs, objects): every verb goes with every object
PAIRS = {
    "en": [
        (["turn on", "turn off"], ["the light", "the fan", "the radio", "the heater", "the television"]),
        (["open", "close", "lock"], ["the door", "the window", "the gate"]),
    ],
    "id": [
        (["nyalakan", "matikan"], ["lampu", "kipas", "radio", "pemanas", "televisi"]),
        (["buka", "tutup", "kunci"], ["pintu", "jendela", "gerbang"]),
    ],
    "es": [
        (["enciende", "apaga"], ["la luz", "el ventilador", "la radio", "la estufa", "la televisión"]),
        (["abre", "cierra", "bloquea"], ["la puerta", "la ventana", "el portón"]),
    ],
}
SINGLE = {
    "en": [
        *["yes", "no", "stop", "go", "left", "right", "up", "down", "help", "cancel", "good morning"],
        *["play music", "stop the music", "next song", "volume up", "volume down", "call home"],
    ],
    "id": [
        *["ya", "tidak", "berhenti", "jalan", "kiri", "kanan", "naik", "turun", "tolong", "batal"],
        *["selamat pagi", "putar musik", "hentikan musik", "lagu berikutnya", "volume naik"],
        *["volume turun", "telepon rumah"],
    ],
    "es": [
        *["sí", "no", "para", "adelante", "izquierda", "derecha", "arriba", "abajo", "ayuda"],
        *["cancela", "buenos días", "pon música", "para la música", "siguiente canción"],
        *["sube el volumen", "baja el volumen", "llama a casa"],
    ],
}
NUMBERED = {
    "en": ["set a timer for {} minutes", "channel {}"],
    "id": ["atur waktu {} menit", "saluran {}"],
    "es": ["pon un temporizador de {} minutos", "canal {}"],
}


def commands(language):
    """Every command of a language."""
    found = list(SINGLE[language])
    for verbs, objects in PAIRS[language]:
        found += [f"{verb} {thing}" for verb in verbs for thing in objects]
    return found + [text.format(d) for text in NUMBERED[language] for d in DIGITS[language][2:]]


def digits(language, dice):
    """One to five digits."""
    return " ".join(dice.choice(DIGITS[language]) for _ in range(dice.choice([1, 2, 3, 3, 4, 4, 5])))


def utterance(language, dice):
    return digits(language, dice) if dice.random() < 0.45 else dice.choice(commands(language))


def words():
    """All words of all languages."""
    texts = [text for language in DIGITS for text in commands(language) + DIGITS[language]]
    return sorted({word for text in texts for word in text.split()})


if __name__ == "__main__":
    for language in DIGITS:
        print(language, len(commands(language)), "commands;", utterance(language, random.Random()))
    print(len(words()), "words")
