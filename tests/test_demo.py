import pyarrow as pa
import pytest

from demo import flights

CSV = """\
year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,\
air_time,distance,hour,minute,time_hour
2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z
2013,1,2,NA,600,NA,NA,800,NA,UA,7,NA,EWR,IAH,NA,1400,6,0,2013-01-02T11:00:00Z
2013,1,3,700,700,0,900,900,0,AA,23,N1,JFK,MIA,120,1089,6,0,2013-01-03T11:00:00Z
2013,1,30,700,700,0,900,900,0,AA,8,N1,JFK,MIA,120,1089,7,0,2013-01-30T12:00:00Z
2013,5,1,700,700,0,900,900,0,AA,8,N1,JFK,MIA,120,1089,7,0,2013-05-01T11:00:00Z
"""


class Frame:
    """As much of a DataFrame as `check` uses."""

    def __init__(self, rows):
        self._rows = rows

    def select(self, *names):
        return Frame(self._rows.select(names))

    def toArrow(self):
        return self._rows


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "flights.csv"
    path.write_text(CSV)
    return path


def test_the_truth_has_what_took_off_what_is_still_to_come_and_nothing_cancelled(csv):
    truth = flights.Truth.of(csv, range(1, 2))
    assert sorted(truth.scheduled.column("flight").to_pylist()) == [7, 8, 1545]
    now = {row["flight"]: row for row in truth.now.to_pylist()}
    assert {flight: row["dep_time"] for flight, row in now.items()} == {1545: 517, 23: 700, 8: None}
    assert truth.counts(1, 8) == (1, 1, 1)
    assert truth.counts(9, 16) == (0, 0, 0)
    assert truth.changed.num_rows == 0


def test_a_key_that_is_there_twice_is_found_out(csv):
    csv.write_text(
        CSV
        + CSV.splitlines()[-1].replace(",5,1,700", ",1,1,700")
        + "\n"
        + CSV.splitlines()[-1].replace(",5,1,", ",1,1,")
    )
    with pytest.raises(flights.Mismatch, match="are no key"):
        flights.Truth.of(csv, range(1, 2))


def test_one_other_value_is_a_mismatch(csv, capsys):
    expected = flights.Truth.of(csv, range(1, 2)).now
    flights.check("the same rows in another order", Frame(expected.take([2, 0, 1])), expected)
    assert "checked: the same rows" in capsys.readouterr().out
    at = expected.schema.get_field_index("distance")
    other = expected.set_column(at, "distance", pa.array([1, 2, 3]))
    for rows in (other, expected.slice(1)):
        with pytest.raises(flights.Mismatch):
            flights.check("the rows", Frame(rows), expected)


def test_only_a_table_is_removed(tmp_path):
    table = tmp_path / "table"
    (table / ".hoodie").mkdir(parents=True)
    (table / ".hoodie" / "hoodie.properties").touch()
    flights.fresh_folder(table)
    assert not table.exists()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    with pytest.raises(SystemExit, match="is no table"):
        flights.fresh_folder(precious)
    assert (precious / "file").exists()


@pytest.mark.parametrize("months", ["0-3", "3-1", "1-13", "spring"])
def test_months_are_a_range(months, capsys):
    with pytest.raises(SystemExit) as left:
        flights.main(["--months", months])
    assert left.value.code == 2
    assert "is no range" in capsys.readouterr().err
