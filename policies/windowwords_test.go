package policies

import (
	"testing"
	"time"
)

// TestWindowInWords holds that people read when a window is open, and its expression only where it has no words.
func TestWindowInWords(t *testing.T) {
	for want, w := range map[string]Window{
		"Mon–Thu 09:00–17:00 Europe/Berlin":         {Cron: "0 9 * * MON-THU", Duration: 8 * time.Hour, Timezone: "Europe/Berlin"},
		"daily 22:00–06:00 UTC":                     {Cron: "0 22 * * *", Duration: 8 * time.Hour, Timezone: "UTC"},
		"Sat, Sun 10:30–12:00 UTC":                  {Cron: "30 10 ? * 6,0", Duration: 90 * time.Minute, Timezone: "UTC"},
		"Mon–Fri, Sun 09:00–11:00, 14:00–16:00 UTC": {Cron: "0 9,14 * * mon-fri,7", Duration: 2 * time.Hour, Timezone: "UTC"},
		"Sat from 00:00 for 48h UTC":                {Cron: "0 0 * * SAT", Duration: 48 * time.Hour, Timezone: "UTC"},
		"0 9 1 * * for 8h (UTC)":                    {Cron: "0 9 1 * *", Duration: 8 * time.Hour, Timezone: "UTC"},
		"0 9 * 6 * for 8h (UTC)":                    {Cron: "0 9 * 6 *", Duration: 8 * time.Hour, Timezone: "UTC"},
		"*/30 9 * * * for 10m (UTC)":                {Cron: "*/30 9 * * *", Duration: 10 * time.Minute, Timezone: "UTC"},
		"0 8-18 * * MON for 30m (UTC)":              {Cron: "0 8-18 * * MON", Duration: 30 * time.Minute, Timezone: "UTC"},
		"0 1,2,3,4,5 * * MON for 30m (UTC)":         {Cron: "0 1,2,3,4,5 * * MON", Duration: 30 * time.Minute, Timezone: "UTC"},
		"0 9 * * MON-FRI/2 for 8h (UTC)":            {Cron: "0 9 * * MON-FRI/2", Duration: 8 * time.Hour, Timezone: "UTC"},
		"0 9 * * NEVER for 8h (UTC)":                {Cron: "0 9 * * NEVER", Duration: 8 * time.Hour, Timezone: "UTC"},
		"Argo CD's sync windows":                    {ArgoCD: true},
	} {
		if got := w.String(); got != want {
			t.Errorf("%s for %s is %q, want %q", w.Cron, w.Duration, got, want)
		}
	}
}
