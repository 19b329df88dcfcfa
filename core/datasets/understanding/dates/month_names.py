"""Names of months and weekdays, whole or cut, in seven languages."""

import re
from functools import cache

_MONTHS = (
    "january januar janvier enero gennaio janeiro januari jänner jan janv ene gen",
    "february februar février fevrier febrero febbraio fevereiro februari feber feb févr fév fev",
    "march märz maerz mars marzo março marco maart mrt mar mär mrz",
    "april avril abril aprile apr avr abr",
    "may mai mayo maggio maio mei mag",
    "june juni juin junio giugno junho jun giu",
    "july juli juillet julio luglio julho jul juil lug",
    "august août aout agosto augustus aug ago aoû",
    "september septembre septiembre settembre setembro sept sep set",
    "october oktober octobre octubre ottobre outubro oct okt ott out",
    "november novembre noviembre novembro nov",
    "december dezember décembre decembre diciembre dicembre dezembro dec dez déc dic",
)
_NAMES = """
    monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag
    freitag samstag sonnabend sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes
    martes miércoles jueves viernes sábado domingo maandag dinsdag woensdag donderdag vrijdag
    zaterdag zondag mo tu tue we wed th thu thur thurs fr fri sa sat su sun di mi do so ma wo vr
    za zo lun mar mer jeu ven sam dim mon tues mié jue vie sáb dom lunedì martedì mercoledì
    giovedì venerdì sabato domenica gio sab segunda terça quarta quinta sexta
"""
_WEEKDAYS = frozenset(re.findall(r"\S+", _NAMES))


def month_of(name: str) -> int | None:
    """The month, from 1 to 12, that a name or its beginning means in one of the languages."""
    return _months().get(name.casefold().rstrip("."))


def is_weekday(name: str) -> bool:
    """Whether a name is that of a day of the week."""
    return name.casefold().rstrip(".,") in _WEEKDAYS


@cache
def _months() -> dict[str, int]:
    return {name: n for n, names in enumerate(_MONTHS, 1) for name in names.split()}
