package policies

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func zoned(t *testing.T, at, zone string) time.Time {
	t.Helper()
	l, err := loadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	got, err := time.Parse("2006-01-02 15:04:05 -0700", at)
	if err != nil {
		t.Fatal(err)
	}
	return got.In(l)
}

// TestWindowNights walks through nights in which the clocks change, and through ordinary
// days: when each window opens and closes.
func TestWindowNights(t *testing.T) {
	for name, c := range map[string]struct {
		window  Window
		from    string   // it is closed then
		changes []string // opens, closes, opens, …, as the zone's clock shows them
	}{
		"a working day in Berlin": {
			window: Window{Cron: "0 9 * * MON-THU", Duration: 8 * time.Hour, Timezone: "Europe/Berlin"}, from: "2026-11-22 12:00:00 +0000",
			changes: []string{"Mon 2026-11-23 09:00 CET", "Mon 2026-11-23 17:00 CET", "Tue 2026-11-24 09:00 CET", "Tue 2026-11-24 17:00 CET", "Wed 2026-11-25 09:00 CET", "Wed 2026-11-25 17:00 CET", "Thu 2026-11-26 09:00 CET", "Thu 2026-11-26 17:00 CET", "Mon 2026-11-30 09:00 CET"},
		},
		"the night that is short, Berlin": {
			window: Window{Cron: "0 22 * * *", Duration: 8 * time.Hour, Timezone: "Europe/Berlin"}, from: "2027-03-27 12:00:00 +0000",
			changes: []string{"Sat 2027-03-27 22:00 CET", "Sun 2027-03-28 06:00 CEST", "Sun 2027-03-28 22:00 CEST"},
		},
		"the night that is long, Berlin": {
			window: Window{Cron: "0 22 * * *", Duration: 8 * time.Hour, Timezone: "Europe/Berlin"}, from: "2026-10-24 12:00:00 +0000",
			changes: []string{"Sat 2026-10-24 22:00 CEST", "Sun 2026-10-25 06:00 CET", "Sun 2026-10-25 22:00 CET"},
		},
		"a start that the clocks skip opens at the jump, Berlin": {
			window: Window{Cron: "30 2 * * *", Duration: time.Hour, Timezone: "Europe/Berlin"}, from: "2027-03-27 12:00:00 +0000",
			changes: []string{"Sun 2027-03-28 03:00 CEST", "Sun 2027-03-28 03:30 CEST", "Mon 2027-03-29 02:30 CEST"},
		},
		"a start in the hour that comes twice opens twice, Berlin": {
			window: Window{Cron: "30 2 * * *", Duration: time.Hour, Timezone: "Europe/Berlin"}, from: "2026-10-24 12:00:00 +0000",
			changes: []string{"Sun 2026-10-25 02:30 CEST", "Sun 2026-10-25 02:00 CET", "Sun 2026-10-25 02:30 CET", "Sun 2026-10-25 03:30 CET", "Mon 2026-10-26 02:30 CET"},
		},
		"an end in the hour that the clocks skip is the jump, New York": {
			window: Window{Cron: "0 0 * * *", Duration: 150 * time.Minute, Timezone: "America/New_York"}, from: "2027-03-13 17:00:00 +0000",
			changes: []string{"Sun 2027-03-14 00:00 EST", "Sun 2027-03-14 03:00 EDT", "Mon 2027-03-15 00:00 EDT"},
		},
		"the night that is long, New York": {
			window: Window{Cron: "0 1 * * *", Duration: time.Hour, Timezone: "America/New_York"}, from: "2026-10-31 17:00:00 +0000",
			changes: []string{"Sun 2026-11-01 01:00 EDT", "Sun 2026-11-01 02:00 EST", "Mon 2026-11-02 01:00 EST"},
		},
		"a midnight that there isn't, São Paulo 2018": {
			window: Window{Cron: "0 0 * * *", Duration: 6 * time.Hour, Timezone: "America/Sao_Paulo"}, from: "2018-11-03 15:00:00 +0000",
			changes: []string{"Sun 2018-11-04 01:00 -02", "Sun 2018-11-04 06:00 -02", "Mon 2018-11-05 00:00 -02"},
		},
		"a day from a midnight that there isn't, São Paulo 2018": {
			window: Window{Cron: "0 0 4 * *", Duration: 24 * time.Hour, Timezone: "America/Sao_Paulo"}, from: "2018-11-03 15:00:00 +0000",
			changes: []string{"Sun 2018-11-04 01:00 -02", "Mon 2018-11-05 00:00 -02", "Tue 2018-12-04 00:00 -02"},
		},
		"a midnight that there isn't, Cairo": {
			window: Window{Cron: "0 0 * * FRI", Duration: 3 * time.Hour, Timezone: "Africa/Cairo"}, from: "2027-04-29 12:00:00 +0000",
			changes: []string{"Fri 2027-04-30 01:00 EEST", "Fri 2027-04-30 03:00 EEST", "Fri 2027-05-07 00:00 EEST"},
		},
		"clocks that jump by half an hour, Lord Howe": {
			window: Window{Cron: "15 2 * * *", Duration: 30 * time.Minute, Timezone: "Australia/Lord_Howe"}, from: "2026-10-03 12:00:00 +0000",
			changes: []string{"Sun 2026-10-04 02:30 +11", "Sun 2026-10-04 02:45 +11", "Mon 2026-10-05 02:15 +11"},
		},
		"clocks that go back by half an hour, Lord Howe": {
			window: Window{Cron: "0 2 * * *", Duration: time.Hour, Timezone: "Australia/Lord_Howe"}, from: "2027-04-03 12:00:00 +0000",
			changes: []string{"Sun 2027-04-04 02:00 +1030", "Sun 2027-04-04 03:00 +1030", "Mon 2027-04-05 02:00 +1030"},
		},
		"a start in the half hour that comes twice opens twice, Lord Howe": {
			window: Window{Cron: "45 1 * * *", Duration: time.Hour, Timezone: "Australia/Lord_Howe"}, from: "2027-04-03 12:00:00 +0000",
			changes: []string{"Sun 2027-04-04 01:45 +11", "Sun 2027-04-04 01:30 +1030", "Sun 2027-04-04 01:45 +1030", "Sun 2027-04-04 02:45 +1030", "Mon 2027-04-05 01:45 +1030"},
		},
		"the night that is short, New York": {
			window: Window{Cron: "0 22 * * *", Duration: 8 * time.Hour, Timezone: "America/New_York"}, from: "2027-03-13 17:00:00 +0000",
			changes: []string{"Sat 2027-03-13 22:00 EST", "Sun 2027-03-14 06:00 EDT", "Sun 2027-03-14 22:00 EDT"},
		},
		"a midnight that comes twice, Cairo": {
			window: Window{Cron: "0 22 * * THU", Duration: 3 * time.Hour, Timezone: "Africa/Cairo"}, from: "2026-10-29 12:00:00 +0000",
			changes: []string{"Thu 2026-10-29 22:00 EEST", "Fri 2026-10-30 01:00 EET", "Thu 2026-11-05 22:00 EET"},
		},
		"an hour before midnight that comes twice, São Paulo 2018": {
			window: Window{Cron: "30 23 * * SAT", Duration: time.Hour, Timezone: "America/Sao_Paulo"}, from: "2018-02-17 15:00:00 +0000",
			changes: []string{"Sat 2018-02-17 23:30 -02", "Sat 2018-02-17 23:00 -03", "Sat 2018-02-17 23:30 -03", "Sun 2018-02-18 00:30 -03", "Sat 2018-02-24 23:30 -03"},
		},
		"7 is Sunday": {
			window: Window{Cron: "0 9 * * 6-7", Duration: time.Hour, Timezone: "UTC"}, from: "2026-11-20 12:00:00 +0000",
			changes: []string{"Sat 2026-11-21 09:00 UTC", "Sat 2026-11-21 10:00 UTC", "Sun 2026-11-22 09:00 UTC", "Sun 2026-11-22 10:00 UTC", "Sat 2026-11-28 09:00 UTC"},
		},
		"windows that meet are one": {
			window: Window{Cron: "0 9,10,11 * * *", Duration: time.Hour, Timezone: "UTC"}, from: "2026-11-20 08:00:00 +0000",
			changes: []string{"Fri 2026-11-20 09:00 UTC", "Fri 2026-11-20 12:00 UTC", "Sat 2026-11-21 09:00 UTC"},
		},
		"a leap day": {
			window: Window{Cron: "0 0 29 2 *", Duration: time.Hour, Timezone: "UTC"}, from: "2026-11-20 08:00:00 +0000",
			changes: []string{"Tue 2028-02-29 00:00 UTC", "Tue 2028-02-29 01:00 UTC"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := zoned(t, c.from, c.window.Timezone)
			gate := Gate{Window: &c.window}
			for i, want := range c.changes {
				open := i%2 == 1
				got := gate.Evaluate(Facts{Now: now})
				if (got.Outcome == Pass) != open {
					t.Fatalf("at %s it says %+v", now, got)
				}
				if at := formatInstant(got.Until, now.Location()); at != want {
					t.Fatalf("at %s it changes at %s, want %s", now, at, want)
				}
				if !strings.HasSuffix(got.Reason, " until "+want) {
					t.Errorf("the reason is %q", got.Reason)
				}
				if before := gate.Evaluate(Facts{Now: got.Until.Add(-time.Nanosecond)}); before.Outcome != got.Outcome {
					t.Errorf("right before %s it says %+v", want, before)
				}
				now = got.Until
			}
		})
	}
}

func TestWindows(t *testing.T) {
	weekday := Window{Cron: "0 9 * * MON-THU", Duration: 8 * time.Hour, Timezone: "Europe/Berlin"}
	night := Window{Cron: "0 16 * * *", Duration: 8 * time.Hour, Timezone: "UTC"}
	always := Window{Cron: "* * * * *", Duration: time.Hour, Timezone: "UTC"}
	for name, c := range map[string]struct {
		gate Gate
		at   string
		want Result
	}{
		"open in the first": {
			Gate{Windows: Windows{weekday, night}}, "2026-11-23 10:00:00 +0000",
			Result{Gate: "windows", Outcome: Pass, Reason: "open until Tue 2026-11-24 00:00 UTC"}, // at 17:00 in Berlin it is 16:00 UTC
		},
		"open in the second": {
			Gate{Windows: Windows{weekday, night}}, "2026-11-22 16:00:00 +0000",
			Result{Gate: "windows", Outcome: Pass, Reason: "open until Mon 2026-11-23 00:00 UTC"},
		},
		"closed until the first opens": {
			Gate{Windows: Windows{night, weekday}}, "2026-11-23 00:00:00 +0000",
			Result{Gate: "windows", Outcome: Wait, Reason: "closed until Mon 2026-11-23 09:00 CET"},
		},
		"one that is never closed": {
			Gate{Window: &always}, "2026-11-23 00:00:00 +0000",
			Result{Gate: "window", Outcome: Pass, Reason: "open"},
		},
		"two that take turns for ever": {
			Gate{Windows: Windows{{Cron: "0 0 * * *", Duration: 12 * time.Hour, Timezone: "UTC"}, {Cron: "0 12 * * *", Duration: 12 * time.Hour, Timezone: "UTC"}}}, "2026-11-23 00:00:00 +0000",
			Result{Gate: "windows", Outcome: Pass, Reason: "open"},
		},
		"the time isn't known": {
			Gate{Window: &weekday}, "0001-01-01 00:00:00 +0000",
			Result{Gate: "window", Outcome: Wait, Reason: "what time it is isn't known"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.gate.Evaluate(Facts{Now: zoned(t, c.at, "UTC")})
			if got.Gate != c.want.Gate || got.Outcome != c.want.Outcome || got.Reason != c.want.Reason {
				t.Errorf("it says %+v, want %+v", got, c.want)
			}
			if known := got.Until.IsZero(); known != (got.Reason == "what time it is isn't known") {
				t.Errorf("it looks again at %s", got.Until)
			}
		})
	}
}

// TestFirstWindowSpeaks holds that of windows that open at once the first one's clock is read out.
func TestFirstWindowSpeaks(t *testing.T) {
	berlin, utc := Window{Cron: "0 9 * * *", Duration: time.Hour, Timezone: "Europe/Berlin"}, Window{Cron: "0 8 * * *", Duration: time.Hour, Timezone: "UTC"}
	for want, windows := range map[string]Windows{"closed until Mon 2026-11-23 09:00 CET": {berlin, utc}, "closed until Mon 2026-11-23 08:00 UTC": {utc, berlin}} {
		if got := (&Gate{Windows: windows}).Evaluate(Facts{Now: zoned(t, "2026-11-23 00:00:00 +0000", "UTC")}); got.Reason != want {
			t.Errorf("it says %s, want %s", got.Reason, want)
		}
	}
}

// TestWindowThatDoesNotOpen holds that a schedule without a day in the years that are searched, as
// of 29 February around 2100, is closed, and isn't said to change.
func TestWindowThatDoesNotOpen(t *testing.T) {
	r, err := (&Window{Cron: "0 0 29 2 *", Duration: time.Hour, Timezone: "UTC"}).newRecurrence()
	if err != nil {
		t.Fatal(err)
	}
	now := zoned(t, "2096-03-02 00:00:00 +0000", "UTC")
	if r.isOpen(now) {
		t.Error("it is open")
	}
	if change, known := r.findChangeOnWall(now); !change.IsZero() || !known {
		t.Errorf("it changes at %s, which is known: %t", change, known)
	}
	if change, known := r.findChange(now); !change.IsZero() || known {
		t.Errorf("it changes at %s, which is known: %t", change, known)
	}
	for _, w := range []Window{{Cron: "whenever", Timezone: "UTC"}, {Cron: "0 0 * * *", Timezone: "Mars/Base"}} {
		if r, err := w.newRecurrence(); err == nil {
			t.Errorf("%+v begins %+v", w, r)
		}
	}
}

func TestWindowProblems(t *testing.T) {
	const missing = "is missing; write the zone like Europe/Berlin, or UTC"
	long := "0 " + strings.Repeat("1,", 100) + "1 * * *"
	for name, c := range map[string]struct {
		window Window
		want   string
	}{
		"a descriptor":               {Window{Cron: "@every 1h", Duration: time.Hour, Timezone: "UTC"}, `window.cron: "@every" is a descriptor, which says no hour; write five fields: minute, hour, day of the month, month, day of the week`},
		"a zone in front":            {Window{Cron: "TZ=UTC 0 9 * * *", Duration: time.Hour, Timezone: "UTC"}, "window.cron: has a zone in it; give it as timezone"},
		"cron's zone in front":       {Window{Cron: "CRON_TZ=UTC 0 9 * * *", Duration: time.Hour, Timezone: "UTC"}, "window.cron: has a zone in it; give it as timezone"},
		"a zone alone":               {Window{Cron: "TZ=0", Duration: time.Hour, Timezone: "UTC"}, "window.cron: has a zone in it; give it as timezone"},
		"both days":                  {Window{Cron: "0 9 1 * MON", Duration: time.Hour, Timezone: "UTC"}, "window.cron: sets the day of the month and the day of the week, of which cron takes either; set one of them, and use two windows for both"},
		"both days, by steps":        {Window{Cron: "0 9 */2 * */2", Duration: time.Hour, Timezone: "UTC"}, "window.cron: sets the day of the month and the day of the week, of which cron takes either; set one of them, and use two windows for both"},
		"never":                      {Window{Cron: "0 9 31 2 *", Duration: time.Hour, Timezone: "UTC"}, `window.cron: "0 9 31 2 *" never comes: there is no such day`},
		"four fields":                {Window{Cron: "0 9 * *", Duration: time.Hour, Timezone: "UTC"}, "window.cron: has 4 fields instead of five: minute, hour, day of the month, month, day of the week"},
		"seconds":                    {Window{Cron: "0 0 9 * * *", Duration: time.Hour, Timezone: "UTC"}, "window.cron: has 6 fields instead of five: minute, hour, day of the month, month, day of the week"},
		"no cron":                    {Window{Cron: " ", Duration: time.Hour, Timezone: "UTC"}, `window.cron: is missing; write it like "0 9 * * MON-THU"`},
		"a long cron":                {Window{Cron: long, Duration: time.Hour, Timezone: "UTC"}, "window.cron: is longer than 200 characters"},
		"an hour that there isn't":   {Window{Cron: "0 24 * * *", Duration: time.Hour, Timezone: "UTC"}, `window.cron: "0 24 * * *" is not a cron expression: end of range (24) above maximum (23): 24`},
		"a weekday that there isn't": {Window{Cron: "0 9 * * 8", Duration: time.Hour, Timezone: "UTC"}, `window.cron: "0 9 * * 8" is not a cron expression: end of range (8) above maximum (6): 8`},
		"no duration":                {Window{Cron: "0 9 * * *", Duration: 0, Timezone: "UTC"}, "window.duration: must be longer than 0; it is 0s"},
		"a duration below zero":      {Window{Cron: "0 9 * * *", Duration: -time.Hour, Timezone: "UTC"}, "window.duration: must be longer than 0; it is -1h0m0s"},
		"a long duration":            {Window{Cron: "0 9 * * *", Duration: 168*time.Hour + 1, Timezone: "UTC"}, "window.duration: must be at most seven days (168h); it is 168h0m0.000000001s"},
		"no zone":                    {Window{Cron: "0 9 * * *", Duration: time.Hour, Timezone: ""}, "window.timezone: " + missing},
		"the machine's zone":         {Window{Cron: "0 9 * * *", Duration: time.Hour, Timezone: "Local"}, `window.timezone: "Local" is another zone on every machine; write the zone like Europe/Berlin, or UTC`},
		"an unknown zone":            {Window{Cron: "0 9 * * *", Duration: time.Hour, Timezone: "Europe/Berln"}, `window.timezone: there is no time zone "Europe/Berln"; write it as the IANA database has it, like Europe/Berlin or UTC`},
		"a file for a zone":          {Window{Cron: "0 9 * * *", Duration: time.Hour, Timezone: "../../etc/localtime"}, `window.timezone: there is no time zone "../../etc/localtime"; write it as the IANA database has it, like Europe/Berlin or UTC`},
		"none":                       {Window{Cron: "0 9 * * *", Duration: 168 * time.Hour, Timezone: "UTC"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			gate := Gate{Window: &c.window}
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
			again := Gate{Windows: Windows{c.window}}
			got = ""
			if err := again.Validate(); err != nil {
				got = err.Error()
			}
			if want := strings.Replace(c.want, "window.", "windows[0].", 1); got != want {
				t.Errorf("of several it says\n%q, want\n%q", got, want)
			}
		})
	}
	for n, want := range map[int]string{0: "windows: at least one window is needed", 21: "windows: 21 windows are too many; at most 20"} {
		if err := (&Gate{Windows: make(Windows, n)}).Validate(); err == nil || err.Error() != want {
			t.Errorf("%d windows: %v", n, err)
		}
	}
}

func TestReplaceSeven(t *testing.T) {
	for field, want := range map[string]string{
		"*": "*", "7": "0", "1,7": "1,0", "5-7": "5,6,0", "0-7": "0,1,2,3,4,5,6", "7-7": "0", "1-7/2": "1,3,5,0", "6-7,3": "6,0,3",
		"*/7": "*/7", "MON-FRI": "MON-FRI", "MON-7": "MON-7", "1-7/0": "1-7/0", "1-7/x": "1-7/x", "8-7": "8-7", "17": "17", "": "",
	} {
		if got := replaceSeven(field); got != want {
			t.Errorf("%q becomes %q, want %q", field, got, want)
		}
	}
}

func FuzzWindow(f *testing.F) {
	f.Add("0 9 * * MON-THU", int64(8*time.Hour), "Europe/Berlin", int64(1_800_000_000))
	f.Add("*/5 * 1-7 * ?", int64(time.Minute), "Africa/Cairo", int64(0))
	f.Add("TZ=0", int64(-1), "/", int64(-62135596800))
	f.Fuzz(func(t *testing.T, expression string, duration int64, zone string, at int64) {
		gate := Gate{Window: &Window{Cron: expression, Duration: time.Duration(duration), Timezone: zone}}
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
