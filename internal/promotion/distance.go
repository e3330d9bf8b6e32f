package promotion

import "slices"

// Distance is how far two environments of a component are apart.
type Distance struct {
	// Common is the newest release that both have had, as it arrived in the
	// first; nil when none is known: histories are kept for a while only.
	Common *Arrival
	// Behind are the releases that the first got after Common and that the
	// second hasn't, newest first: what would have to move.
	Behind []Arrival
	// Ahead is the reverse: what the second got after Common by another way, such
	// as a hotfix, newest first.
	Ahead []Arrival
}

// CompareHistories compares an environment's history with that of an earlier one of the
// pipeline; both are newest first, as in Env.History. Environments with the
// same release are no distance apart, whatever they had before.
func CompareHistories(earlier, later []Arrival) Distance {
	at := slices.IndexFunc(later, func(a Arrival) bool { return hasRelease(earlier, a.Release) })
	if at < 0 {
		return Distance{Behind: newestPerRelease(earlier), Ahead: newestPerRelease(later)}
	}
	from := slices.IndexFunc(earlier, func(a Arrival) bool { return a.Release == later[at].Release })
	return Distance{Common: &earlier[from], Behind: newestPerRelease(earlier[:from]), Ahead: newestPerRelease(later[:at])}
}

func hasRelease(history []Arrival, release string) bool {
	return slices.ContainsFunc(history, func(a Arrival) bool { return a.Release == release })
}

// newestPerRelease keeps the newest arrival of each release.
func newestPerRelease(history []Arrival) []Arrival {
	var out []Arrival
	for _, a := range history {
		if !hasRelease(out, a.Release) {
			out = append(out, a)
		}
	}
	return out
}
