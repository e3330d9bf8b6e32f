package policies

import (
	"strings"
	"testing"
	"time"
)

func TestFreeze(t *testing.T) {
	holidays := Freeze{From: "2026-12-20", To: "2027-01-03", Timezone: "Europe/Berlin", Reason: "holidays"}
	exact := Freeze{From: "2026-12-20T18:00:00+01:00", To: "2026-12-20T20:00:00+01:00"}
	saoPaulo := Freeze{From: "2018-11-04", To: "2018-11-05", Timezone: "America/Sao_Paulo"}
	day := func(date, next Moment, zone string) Freeze { return Freeze{From: date, To: next, Timezone: zone} }
	const before = "not frozen before Sun 2026-12-20 00:00 CET"
	for name, c := range map[string]struct {
		freeze Freeze
		at     string
		want   Outcome
		reason string
		until  string
	}{
		"before":                             {holidays, "2026-12-19 22:59:59 +0000", Pass, before, "2026-12-19 23:00:00 +0000"},
		"it begins at local midnight":        {holidays, "2026-12-19 23:00:00 +0000", Wait, "frozen until Sun 2027-01-03 00:00 CET: holidays", "2027-01-02 23:00:00 +0000"},
		"until the last moment":              {holidays, "2027-01-02 22:59:59 +0000", Wait, "frozen until Sun 2027-01-03 00:00 CET: holidays", "2027-01-02 23:00:00 +0000"},
		"its end is no part of it":           {holidays, "2027-01-02 23:00:00 +0000", Pass, "not frozen since Sun 2027-01-03 00:00 CET", ""},
		"times with an offset need no zone":  {exact, "2026-12-20 17:00:00 +0000", Wait, "frozen until Sun 2026-12-20 19:00 UTC", "2026-12-20 19:00:00 +0000"},
		"a midnight that there isn't":        {saoPaulo, "2018-11-04 02:59:59 +0000", Pass, "not frozen before Sun 2018-11-04 01:00 -02", "2018-11-04 03:00:00 +0000"},
		"from the jump on":                   {saoPaulo, "2018-11-04 03:00:00 +0000", Wait, "frozen until Mon 2018-11-05 00:00 -02", "2018-11-05 02:00:00 +0000"},
		"the short day of Berlin is over":    {day("2027-03-28", "2027-03-29", "Europe/Berlin"), "2027-03-28 22:00:00 +0000", Pass, "not frozen since Mon 2027-03-29 00:00 CEST", ""},
		"and an hour before it isn't":        {day("2027-03-28", "2027-03-29", "Europe/Berlin"), "2027-03-28 21:59:59 +0000", Wait, "frozen until Mon 2027-03-29 00:00 CEST", "2027-03-28 22:00:00 +0000"},
		"the long day of New York goes on":   {day("2026-11-01", "2026-11-02", "America/New_York"), "2026-11-02 04:59:59 +0000", Wait, "frozen until Mon 2026-11-02 00:00 EST", "2026-11-02 05:00:00 +0000"},
		"Cairo's day without a midnight":     {day("2027-04-30", "2027-05-01", "Africa/Cairo"), "2027-04-29 21:59:59 +0000", Pass, "not frozen before Fri 2027-04-30 01:00 EEST", "2027-04-29 22:00:00 +0000"},
		"Lord Howe's day of 24 and a half":   {day("2027-04-04", "2027-04-05", "Australia/Lord_Howe"), "2027-04-04 13:29:59 +0000", Wait, "frozen until Mon 2027-04-05 00:00 +1030", "2027-04-04 13:30:00 +0000"},
		"a midnight that comes twice begins": {day("2018-02-18", "2018-02-19", "America/Sao_Paulo"), "2018-02-18 02:59:59 +0000", Pass, "not frozen before Sun 2018-02-18 00:00 -03", "2018-02-18 03:00:00 +0000"},
		"the time isn't known":               {holidays, "0001-01-01 00:00:00 +0000", Wait, "what time it is isn't known", ""},
	} {
		t.Run(name, func(t *testing.T) {
			gate := Gate{Freeze: &c.freeze}
			got := gate.Evaluate(Facts{Now: zoned(t, c.at, "UTC")})
			if got.Gate != "freeze" || got.Outcome != c.want || got.Reason != c.reason {
				t.Errorf("it says %+v", got)
			}
			if until := got.Until.UTC().Format("2006-01-02 15:04:05 -0700"); c.until != "" && until != c.until || c.until == "" && !got.Until.IsZero() {
				t.Errorf("it looks again at %s, want %q", got.Until, c.until)
			}
		})
	}
}

func TestFreezeProblems(t *testing.T) {
	const missing = "is missing; write a date like 2026-12-20, or a time with its offset like 2026-12-20T18:00:00+01:00"
	for name, c := range map[string]struct {
		freeze Freeze
		want   string
	}{
		"nothing":                  {Freeze{}, "freeze.from: " + missing + "\nfreeze.to: " + missing},
		"dates without zone":       {Freeze{From: "2026-12-20", To: "2027-01-03"}, "freeze.timezone: is missing; write the zone like Europe/Berlin, or UTC"},
		"no such zone":             {Freeze{From: "2026-12-20T00:00:00Z", To: "2027-01-03T00:00:00Z", Timezone: "Berlin"}, `freeze.timezone: there is no time zone "Berlin"; write it as the IANA database has it, like Europe/Berlin or UTC`},
		"only an end without zone": {Freeze{From: "2026-12-20T00:00:00Z", To: "2027-01-03"}, "freeze.timezone: is missing; write the zone like Europe/Berlin, or UTC"},
		"only a beginning without": {Freeze{From: "2026-12-20", To: "2027-01-03T00:00:00Z"}, "freeze.timezone: is missing; write the zone like Europe/Berlin, or UTC"},
		"no such day at the end":   {Freeze{From: "2026-12-20", To: "2027-02-30", Timezone: "UTC"}, `freeze.to: "2027-02-30" is neither a date like 2026-12-20 nor a time with its offset like 2026-12-20T18:00:00+01:00`},
		"the same day":             {Freeze{From: "2026-12-20", To: "2026-12-20", Timezone: "UTC"}, "freeze.to: 2026-12-20 is not after from, 2026-12-20"},
		"no such day":              {Freeze{From: "2026-02-30", To: "2026-12-20", Timezone: "UTC"}, `freeze.from: "2026-02-30" is neither a date like 2026-12-20 nor a time with its offset like 2026-12-20T18:00:00+01:00`},
		"no offset":                {Freeze{From: "2026-02-20T10:00:00", To: "2026-12-20", Timezone: "UTC"}, `freeze.from: "2026-02-20T10:00:00" is neither a date like 2026-12-20 nor a time with its offset like 2026-12-20T18:00:00+01:00`},
		"a long reason":            {Freeze{From: "2026-02-20", To: "2026-12-20", Timezone: "UTC", Reason: strings.Repeat("x", 201)}, "freeze.reason: is longer than 200 bytes"},
		"lines of reasons":         {Freeze{From: "2026-02-20", To: "2026-12-20", Timezone: "UTC", Reason: "a\nb"}, "freeze.reason: must be one line"},
		"none":                     {Freeze{From: "2026-02-20", To: "2026-12-20T00:00:00Z", Timezone: "UTC", Reason: strings.Repeat("x", 200)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			gate := Gate{Freeze: &c.freeze}
			got := ""
			if err := gate.Validate(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("it says\n%q, want\n%q", got, c.want)
			}
			if c.want != "" && gate.Evaluate(Facts{Now: time.Unix(1e9, 0)}).Outcome != Fail {
				t.Error("it is evaluated all the same")
			}
		})
	}
}

// TestFreezeWaitsOnDoubt holds that a freeze of which one end can't be told never passes.
func TestFreezeWaitsOnDoubt(t *testing.T) {
	for _, f := range []Freeze{{From: "soon", To: "2026-12-20T00:00:00Z"}, {From: "2026-12-20T00:00:00Z", To: "later"}} {
		for _, at := range []string{"2026-12-19 00:00:00 +0000", "2026-12-21 00:00:00 +0000"} {
			if got := f.evaluate(Facts{Now: zoned(t, at, "UTC")}); got.Outcome != Wait || got.Reason != "the freeze can't be evaluated: its beginning or end can't be told" {
				t.Errorf("from %s to %s, at %s it says %+v", f.From, f.To, at, got)
			}
		}
	}
}

// TestDayStart compares the first instant of days with a search minute by minute.
func TestDayStart(t *testing.T) {
	for _, c := range []struct{ day, zone string }{
		{"2026-12-20", "Europe/Berlin"}, {"2018-11-04", "America/Sao_Paulo"}, {"2018-02-18", "America/Sao_Paulo"}, {"2027-04-30", "Africa/Cairo"}, {"2026-11-01", "America/Havana"},
		{"2026-03-08", "America/Havana"}, {"2011-12-30", "Pacific/Apia"}, {"2011-12-31", "Pacific/Apia"}, {"2026-04-05", "Australia/Lord_Howe"}, {"2026-06-01", "Pacific/Kiritimati"}, {"2026-06-01", "Pacific/Niue"}, {"2026-06-01", "Etc/GMT+5"},
	} {
		zone, err := loadZone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.Parse(time.DateOnly, c.day)
		if err != nil {
			t.Fatal(err)
		}
		want := day.Add(-30 * time.Hour)
		for readWall(want, zone).Before(day) {
			want = want.Add(time.Minute)
		}
		if got := findDayStart(day, zone); !got.Equal(want) {
			t.Errorf("%s begins in %s at %s, want %s", c.day, c.zone, got.In(zone), want.In(zone))
		}
	}
}

func FuzzFreeze(f *testing.F) {
	f.Add("2026-12-20", "2027-01-03T00:00:00Z", "Europe/Berlin", int64(1_800_000_000))
	f.Add("9999-12-31", "0000-01-01", "", int64(-1))
	f.Fuzz(func(t *testing.T, from, to, zone string, at int64) {
		gate := Gate{Freeze: &Freeze{From: Moment(from), To: Moment(to), Timezone: zone}}
		now := time.Unix(at%(1<<33), 0)
		got := gate.Evaluate(Facts{Now: now})
		if gate.Validate() != nil {
			if got.Outcome != Fail {
				t.Fatalf("an invalid one says %+v", got)
			}
			return
		}
		if got.Outcome == Fail || got.Reason == "" || !got.Until.IsZero() && !got.Until.After(now) {
			t.Fatalf("it says %+v", got)
		}
	})
}
