"""What stands beside a number: a currency, a percent sign, a unit, a thousand or a million."""

import re
from collections.abc import Iterable

_CODES = """
    SEK NOK DKK AUD CAD NZD HKD SGD MXN ZAR RON BGN ISK AED SAR EGP NGN KES ARS CLP COP PEN IDR
    MYR TWD PKR BDT LKR MAD
"""
CURRENCIES = (  # the spellings of one currency; the first is the usual one
    ("€", "EUR", "Euro"),
    ("$", "USD", "US$", "US-$", "Dollar"),
    ("£", "GBP"),
    ("¥", "JPY", "￥", "円"),
    ("CHF", "SFr.", "Fr.", "SFr"),
    ("₹", "INR", "Rs.", "Rs"),
    ("元", "CNY", "RMB"),
    ("₽", "RUB", "руб.", "руб"),
    ("₩", "KRW"),
    ("₺", "TRY", "TL"),
    ("₴", "UAH"),
    ("₪", "ILS"),
    ("₫", "VND"),
    ("฿", "THB"),
    ("₱", "PHP"),
    ("R$", "BRL"),
    ("zł", "PLN"),
    ("Kč", "CZK"),
    ("Ft", "HUF"),
    ("kr", "kr."),
    *((code,) for code in re.findall(r"\w+", _CODES)),
    *(("A$",), ("C$",), ("NZ$",), ("HK$",), ("S$",), ("₿", "BTC"), ("ETH",)),
)
PERCENT = ("%", "percent", "Percent", "Prozent", "pct", "pct.", "Pct", "％")
SCALES = {  # suffixes that multiply
    "K": 1e3,
    "k": 1e3,
    "Tsd": 1e3,
    "Tsd.": 1e3,
    "M": 1e6,
    "m": 1e6,
    "mn": 1e6,
    "Mn": 1e6,
    "MM": 1e6,
    "Mio": 1e6,
    "Mio.": 1e6,
    "million": 1e6,
    "B": 1e9,
    "b": 1e9,
    "bn": 1e9,
    "Bn": 1e9,
    "Mrd": 1e9,
    "Mrd.": 1e9,
    "billion": 1e9,
    "T": 1e12,
}
_CERTAIN_SCALES = {
    "K",
    "B",
    "bn",
    "Bn",
    "mn",
    "Mn",
    "Mio",
    "Mio.",
    "Mrd",
    "Mrd.",
    "Tsd",
    "Tsd.",
} | {
    "million",
    "billion",
    "MM",
}
_UNITS = """
    kg g mg µg μg ug t lb lbs oz st km m dm cm mm µm μm um nm mi ft in yd l L dl cl ml mL µl hl
    gal s sec ms µs ns min h hr hrs d w a y yr yrs °C °F °K ℃ ℉ ° K C F Pa hPa kPa MPa bar mbar
    psi J kJ MJ cal kcal Wh kWh MWh GWh W kW MW GW hp PS V mV kV A mA Ah mAh Ω ohm Hz kHz MHz
    GHz dB N kN Nm mol mmol ppm ppb m² m³ m2 m3 m^2 m^3 cm² cm³ cm2 cm3 km² km2 ha ft² ft2 sqft
    sqm qm mph kph km/h kmh m/s mm/h l/min L/min rpm px pt em rem bit B KB MB GB TB kB KiB MiB
    GiB g/l mg/l mg/dl mg/dL mmol/l mmol/L g/cm³ g/cm3 kg/m³ kg/m3 g/km W/m² cc ccm lm lx Bq Sv
    dpi fps pcs pc Stk St. Stück ‰ x × year years day days hour hours minute minutes second
    seconds week weeks month months
"""
KNOWN_UNITS = frozenset(re.findall(r"\S+", _UNITS))
_NOUNS = """
    st nd rd th am pm a.m. p.m. jan feb mar apr may jun jul aug sep oct nov dec januar februar
    märz april mai juni juli august september oktober november dezember january february march
    june july october december uhr of
"""
_NO_UNITS = frozenset(re.findall(r"\S+", _NOUNS))
_ONLY_APART = frozenset("abdwytABCFNU")  # else parts of codes such as `5a`
MAX_UNITS = 10  # in one column; more are no units but names


def currency_of(token: str) -> tuple[str, ...] | None:
    """The spellings of the currency that a token names."""
    return next((group for group in CURRENCIES if token in group), None)


def is_scaling(tokens: Iterable[str]) -> bool:
    """Whether all tokens multiply, and one of them can mean nothing else (`m` may be metres)."""
    found = set(tokens)
    scaling = bool(found) and found <= set(SCALES)
    return scaling and (bool(found & _CERTAIN_SCALES) or found in ({"M"}, {"k"}))


def unit_of(token: str) -> str:
    """One spelling of a unit: `Years` is `year`, `Kg` is `kg`, but `mW` is not `MW`."""
    if len(token) >= 4:
        return token.casefold().rstrip("s")
    alike = [unit for unit in KNOWN_UNITS if unit.casefold() == token.casefold()]
    return alike[0] if len(alike) == 1 and token not in KNOWN_UNITS else token


def spellings_of(affix: str) -> tuple[str, ...]:
    """All that means the same as a currency, a percent sign or a unit."""
    if affix in PERCENT:
        return PERCENT
    if currency := currency_of(affix):
        return currency
    cases: tuple[str, ...] = (affix, affix.lower(), affix.upper(), affix.capitalize())
    if affix.isalpha() and len(affix) >= 4:
        cases += tuple(case.rstrip("sS") for case in cases) + tuple(f"{case}s" for case in cases)
    return tuple(dict.fromkeys(case for case in cases if unit_of(case) == unit_of(affix)))


def can_be_unit(token: str, *, apart: bool) -> bool:
    """Whether a token is a unit.

    Args:
        apart: whether a blank stands before it; `12a` may be a house, `12 a` is not.
    """
    if token.casefold() in _NO_UNITS:
        return False
    if token in _ONLY_APART and not apart:
        return False
    return (
        unit_of(token) in KNOWN_UNITS
        or token in KNOWN_UNITS
        or (apart and re.match(r"[^\W\d_]|[°‰µ\"']", token) is not None)
    )
