"""What the name of a column says about it: an identifier, a code, a time."""

import re
from functools import cache

_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-zäöüßéèà]+|[A-Z]+|\d+")

# Words of names, in lower case. Values decide with the name: none of these decides alone.
_IDENTIFIER = re.compile(
    r"""
    ids? | uu?id | guid | pk | oid | rid | idx | index | key | hash | sha(1|256)? | md5 | checksum
    | token | identifier | unnamed | nr | no | num | number | serial | ssn | iban | isbn | imei
    | vin | row(id|name|names|num|number)? | obs | observation | record | sample | case
    | ticket | invoice
    | subject | respondent | participant | patient | passenger | customer | client | user | member
    | employee | student | person | order | transaction | session | device | account
    | identifikator | kennung | schl(ue|ü)ssel | nummer | lfd(nr)? | kunden? | seriennummer
    """,
    re.VERBOSE,
)
_OF_THINGS = re.compile(
    r"""
    (row|user|customer|client|passenger|patient|person|order|product|item|account|transaction
    |session|device|store|shop|employee|student|sample|record|case|subject|respondent|invoice
    |ticket|member|kunden|artikel|bestell|rechnungs|matrikel|player|game|match|event|image|file
    |house|loan|claim|policy)(id|nr|no|num|key|uuid|guid|nummer)s?
    """,
    re.VERBOSE,
)
_CODE = re.compile(r"ids?|uid|codes?")
_POSTAL = re.compile(
    r"""
    zips? | zipcodes? | plz | postal | postal(code|zip) | post(code|leitzahl|nummer|nr) | npa | cep
    | pincode | eircode | fips | ags | insee
    """,
    re.VERBOSE,
)
_ORDER = re.compile(
    r"""
    years? | yr | months? | weeks? | days? | dates? | datum | times? | timestamp | t | steps?
    | trend | hours? | minutes? | seconds? | sec | period | quarter | season | epoch | cycle
    | jahr | monat
    | tage? | woche | zeit | stunde | age | alter | rank(ing)? | rang | position | place | platz
    | round | distance | depth | height | level
    """,
    re.VERBOSE,
)
_DATE = re.compile(r"dates?|datum|datetime|fecha")
_TIME = re.compile(
    r"ts | dt | at | times? | (time)?stamps? | epoch | unix | created | updated | modified | when"
    r"| zeit(stempel|punkt)? | uhrzeit | hora | heure",
    re.VERBOSE,
)
_GENERIC = re.compile(
    r"[A-Za-z]\d*|(feature|feat|col|column|var|input|pixel|dim)_?\d+", re.IGNORECASE
)


@cache
def parts_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: `CustomerID2` → customer, id, 2."""
    return tuple(part.lower() for part in _PARTS.findall(name))


def names_identifier(name: str) -> bool:
    """Whether the name is one of an identifier, such as `customer_id` or `Invoice No`.

    The last word decides: `person` and `order number` name rows, `person_income` and `number of
    persons` do not.
    """
    words = [part for part in parts_of(name) if not part.isdigit()]
    if not words:
        return False
    ends = words[0] in {"id", "uid"} or _IDENTIFIER.fullmatch(words[-1]) is not None
    return ends or _any(_OF_THINGS, name)


def names_code(name: str) -> bool:
    """Whether a number of this name stands for a thing, such as `store_id` or `area code`."""
    return _any(_CODE, name) or _any(_OF_THINGS, name)


def names_postal_code(name: str) -> bool:
    """Whether the name is one of a postal code, such as `zip` or `PLZ`."""
    return _any(_POSTAL, name)


def names_order(name: str) -> bool:
    """Whether counting is what a column of this name means: times, ranks, distances."""
    return _any(_ORDER, name)


def names_date(name: str) -> bool:
    """Whether the name is one of a date, such as `start_date` or `Datum`."""
    return _any(_DATE, name)


def names_time(name: str) -> bool:
    """Whether the name is one of a moment, such as `timestamp` or `createdAt`."""
    return _any(_TIME, name)


def names_nothing(name: str) -> bool:
    """Whether the name is a letter or a number, as of generated features: `x`, `x7`, `V3`."""
    return _GENERIC.fullmatch(name.strip()) is not None


def _any(words: re.Pattern[str], name: str) -> bool:
    return any(words.fullmatch(part) for part in parts_of(name))
