"""Which encoding of Cyrillic, Greek, Hebrew or Arabic letters bytes are in, from a few words.

A statistic of whole pages, as in charset-normalizer, does not tell the encoding of a table with
three city names. Two facts do: in a word of these scripts every letter is one beyond ASCII, while
in a word of a Latin script most are ASCII; and in the right encoding words are written in lower
case, in capitals or with one capital in front, mostly with frequent letters.
"""

import re
import unicodedata
from collections.abc import Sequence
from statistics import fmean

MOSTLY = 0.6  # of the letters of words with letters beyond ASCII: more than in any Latin script
LEAST_SCORE = 0.65  # words in the right encoding reach 0.7; those of East Asia in a wrong one 0.64
LEAST_OTHER = 0.4  # of an encoding that is named beside the best
WORD = re.compile(r"[^\W\d_]+")
FREQUENT_FIRST = {  # letters by their frequency in texts
    "Russian": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
    "Greek": "αοιετσνηυρπκμλωςγδθχφβξζψ",
    "Hebrew": "יוהלאתרמבשנםדכעפקגחטןסזצךףץ",
    "Arabic": "اليمنوتربةعدسفهكقحجأطشصىخضذثإزءغئظؤآ",
}
CANDIDATES = (  # in the order of their use
    *(("cp1251", "Russian"), ("koi8_r", "Russian"), ("cp866", "Russian")),
    *(("iso8859_5", "Russian"), ("mac_cyrillic", "Russian")),
    *(("cp1253", "Greek"), ("iso8859_7", "Greek"), ("cp737", "Greek")),
    *(("cp1255", "Hebrew"), ("cp1256", "Arabic")),
)


def guess(sample: bytes) -> Sequence[str]:
    """The encodings of these scripts that fit the sample, the best first; empty if none does.

    Args:
        sample: lines with bytes beyond ASCII.
    """
    words = WORD.findall(sample.decode("latin-1"))
    marked = "".join(word for word in words if not word.isascii())
    if not marked or sum(not one.isascii() for one in marked) < MOSTLY * len(marked):
        return []
    scores = {name: _score(sample, name, script) for name, script in CANDIDATES}
    if max(scores.values()) < LEAST_SCORE:
        return []
    best = sorted(scores, key=lambda name: -round(scores[name], 2))  # the usual ones are first
    return [name for name in best if scores[name] > LEAST_OTHER]


def _score(sample: bytes, name: str, script: str) -> float:
    """How frequent the letters are, times the shares of words in one script and in usual case."""
    try:
        text = sample.decode(name)
    except UnicodeDecodeError:
        return 0.0
    words = [_plain(word) for word in WORD.findall(text) if not word.isascii()]
    if not words:
        return 0.0
    order = FREQUENT_FIRST[script]
    ranks = {letter: 1 - place / len(order) for place, letter in enumerate(order)}
    frequent = fmean(fmean(ranks.get(letter, 0.0) for letter in word.lower()) for word in words)
    pure = fmean(all(letter in ranks for letter in word.lower()) for word in words)
    usual = fmean(word in (word.lower(), word.upper(), word.capitalize()) for word in words)
    signs = sum(not one.isascii() and not one.isalpha() and not one.isspace() for one in text)
    return frequent * pure * usual * (1 - min(1.0, signs / sum(map(len, words))))


def _plain(word: str) -> str:
    """The word without accents; й and ё stay letters of their own."""
    decomposed = unicodedata.normalize("NFD", word.replace("й", "и").replace("Й", "И"))
    return "".join(one for one in decomposed if not unicodedata.combining(one))
