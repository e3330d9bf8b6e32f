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

// Between compares an environment's history with that of an earlier one of the
// pipeline; both are newest first, as in Env.History. Environments with the
// same release are no distance apart, whatever they had before.
func Between(earlier, later []Arrival) Distance {
	at := slices.IndexFunc(later, func(a Arrival) bool { return has(earlier, a.Release) })
	if at < 0 {
		return Distance{Behind: once(earlier), Ahead: once(later)}
	}
	from := slices.IndexFunc(earlier, func(a Arrival) bool { return a.Release == later[at].Release })
	return Distance{Common: &earlier[from], Behind: once(earlier[:from]), Ahead: once(later[:at])}
}

func has(history []Arrival, release string) bool {
	return slices.ContainsFunc(history, func(a Arrival) bool { return a.Release == release })
}

// once keeps the newest arrival of each release.
func once(history []Arrival) []Arrival {
	var out []Arrival
	for _, a := range history {
		if !has(out, a.Release) {
			out = append(out, a)
		}
	}
	return out
}
