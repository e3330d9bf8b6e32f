package propose

import (
	"fmt"
	"slices"
	"strings"
)

// orderEvidence counts, for two environments, the values that the first had before the second.
type orderEvidence map[[2]string]int

func newOrderEvidence(fields []*field) orderEvidence {
	out := orderEvidence{}
	for _, f := range fields {
		type key struct{ component, value string }
		first := map[key]map[string]int{}
		for _, u := range f.uses {
			for i, v := range u.values {
				if i == 0 {
					continue // it was there from the beginning
				}
				k := key{u.component, v.value}
				if first[k] == nil {
					first[k] = map[string]int{}
				}
				if at, ok := first[k][u.environment]; !ok || v.at < at {
					first[k][u.environment] = v.at
				}
			}
		}
		for _, envs := range first {
			for a, at := range envs {
				for b, then := range envs {
					if at < then {
						out[[2]string{a, b}]++
					}
				}
			}
		}
	}
	return out
}

// before says whether a comes before b: by their names where both are known words, else by
// history. Not ok where neither says.
func (o orderEvidence) before(a, b string) (before, ok bool) {
	ra, known := rankOf(a)
	rb, both := rankOf(b)
	if known && both && ra != rb {
		return ra < rb, true
	}
	there, back := o[[2]string{a, b}], o[[2]string{b, a}]
	return there > back, there != back
}

// Steps are environments in their order: those of one step come after all of the step before.
type Steps [][]string

// All are the environments, in order.
func (s Steps) All() []string { return slices.Concat(s...) }

// OrderEnvironments is the environments' order, and what speaks for it. order is a person's: then it counts.
// A *ChoiceError where neither names nor history tell.
func OrderEnvironments(environments []string, c *Carried, order []string) (Steps, string, error) {
	if len(order) > 0 {
		steps, err := checkOrder(environments, order)
		return steps, "as --order says", err
	}
	place := map[string]int{} // how many come before
	unsettled := false
	for i, a := range environments {
		for _, b := range environments[i+1:] {
			if sameRank(a, b) {
				continue
			}
			first, ok := c.order.before(a, b)
			switch {
			case !ok:
				unsettled = true
			case first:
				place[b]++
			default:
				place[a]++
			}
		}
	}
	sorted := slices.Clone(environments)
	slices.SortStableFunc(sorted, func(a, b string) int { return place[a] - place[b] })
	var steps Steps
	for i, e := range sorted {
		if i > 0 && place[e] == place[sorted[i-1]] {
			unsettled = unsettled || !sameRank(e, sorted[i-1])
			steps[len(steps)-1] = append(steps[len(steps)-1], e)
			continue
		}
		steps = append(steps, []string{e})
	}
	if unsettled || !keepsRanks(sorted) {
		return nil, "", &ChoiceError{
			Question: fmt.Sprintf("In which order do releases go through %s? Neither the names nor the history tell.",
				strings.Join(byRank(sorted), ", ")),
			Options: orderOptions(byRank(sorted)),
		}
	}
	return steps, c.explainOrder(steps), nil
}

// keepsRanks says that no environment comes before one whose name comes earlier.
func keepsRanks(environments []string) bool {
	last := 0
	for _, e := range environments {
		r, known := rankOf(e)
		if known && r < last {
			return false
		}
		last = max(last, r)
	}
	return true
}

// byRank has the known names in their order, in the places that known names have.
func byRank(environments []string) []string {
	isKnown := func(e string) bool { _, ok := rankOf(e); return ok }
	known := slices.DeleteFunc(slices.Clone(environments), func(e string) bool { return !isKnown(e) })
	slices.SortStableFunc(known, func(a, b string) int {
		ra, _ := rankOf(a)
		rb, _ := rankOf(b)
		return ra - rb
	})
	out := slices.Clone(environments)
	for i, e := range out {
		if isKnown(e) {
			out[i], known = known[0], known[1:]
		}
	}
	return out
}

// maxOrders bounds the orders that are offered.
const maxOrders = 6

// orderOptions are the orders of a few environments; of many the first one as an example.
func orderOptions(environments []string) []Option {
	var out []Option
	var add func(done, rest []string)
	add = func(done, rest []string) {
		if !keepsRanks(done) {
			return
		}
		if len(rest) == 0 && len(out) < maxOrders {
			out = append(out, Option{Flags: []string{"--order=" + strings.Join(done, ",")}, Meaning: strings.Join(done, ", then ")})
		}
		for i, e := range rest {
			if len(out) < maxOrders {
				add(append(slices.Clone(done), e), slices.Delete(slices.Clone(rest), i, i+1))
			}
		}
	}
	add(nil, environments)
	return out
}

func sameRank(a, b string) bool {
	ra, known := rankOf(a)
	rb, both := rankOf(b)
	return known && both && ra == rb
}

// checkOrder takes a person's order, in which dev,qa,prod-eu+prod-us has a step of two.
func checkOrder(environments, order []string) (Steps, error) {
	var steps Steps
	left := slices.Clone(environments)
	for _, text := range order {
		var step []string
		for name := range strings.SplitSeq(text, "+") {
			name = strings.TrimSpace(name)
			i := slices.Index(left, name)
			if i < 0 {
				return nil, fmt.Errorf("--order: %q is no environment, or is there twice; the environments are %s", name,
					strings.Join(environments, ", "))
			}
			left = slices.Delete(left, i, i+1)
			step = append(step, name)
		}
		steps = append(steps, step)
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("--order leaves out %s: name every environment, those of one step joined by + (dev,qa,prod-eu+prod-us)",
			strings.Join(left, ", "))
	}
	return steps, nil
}

// explainOrder says what speaks for an order.
func (c *Carried) explainOrder(steps Steps) string {
	agree, against, known := 0, 0, true
	all := steps.All()
	for i, a := range all {
		_, ok := rankOf(a)
		known = known && ok
		for _, b := range all[i+1:] {
			agree += c.order[[2]string{a, b}]
			against += c.order[[2]string{b, a}]
		}
	}
	why := "by where values came first"
	if known {
		why = "by their names"
	}
	if agree+against > 0 {
		why += fmt.Sprintf("; of the values that went from one to another in the history, %d went this way and %d the other",
			agree, against)
	}
	return why
}
