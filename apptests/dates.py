"""Subclasses of the immutable types of datetime: their instances, members of enumerations, arithmetic and texts."""

import datetime
import enum

from apptests.raising import message


class Day(datetime.date):
    def twice(self):
        return self.year * 2


class Span(datetime.timedelta):
    pass


class Stamp(datetime.datetime):
    label = "stamp"


class Spelled(datetime.date):
    def isoformat(self):
        return "spelled " + super().isoformat()


class Feast(Day, enum.Enum):
    first = 2020, 1, 2
    second = 2021, 3, 4


class Length(datetime.timedelta, enum.Enum):
    week = 7


def test_members():
    assert Feast.first.year == 2020 and Feast.second > Feast.first and Feast.first.twice() == 4040
    assert Feast.first == datetime.date(2020, 1, 2) and hash(Feast.first) == hash(datetime.date(2020, 1, 2))
    return Feast.first.name, Feast.first.value, Length.week + Length.week, str(Length.week), list(Feast.__members__)


def test_members_made_here():
    class Holiday(datetime.date, enum.Enum):
        new_year = 2020, 1, 1

    return Holiday.new_year.year, Holiday["new_year"].isoformat(), Holiday.new_year < Day(2021, 1, 1)


def test_instances():
    day = Day(2021, 2, 3)
    day.note = "x"
    later = day + datetime.timedelta(2)
    kinds = [type(made).__name__ for made in (day, later, day.replace(day=9), day - day, Span(3) + Span(4))]
    return (
        kinds,
        day.note,
        later.twice(),
        repr(day),
        str(day),
        f"{day:%Y}",
        f"{day}",
        {day: 1}[datetime.date(2021, 2, 3)],
    )


def test_stamps():
    stamp = Stamp(2021, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    texts = [str(stamp), repr(stamp), f"{stamp}", stamp.isoformat(), f"{stamp:%H}"]
    return texts, stamp.hour, stamp.date(), stamp.label, (stamp - datetime.timedelta(1)).day


def test_texts_by_the_methods_of_the_class():
    day = Spelled(2020, 1, 2)
    return str(day), f"{day}", day.isoformat()


def test_errors():
    return message(lambda: Day(1, 2)), message(lambda: Day(2021, 13, 1)), message(lambda: Day(2021, 1, 1) + 1)
