package textdiff

// Hunk is a run of lines, or items, that differs: old[OldFrom:OldTo] became
// new[NewFrom:NewTo]. One of them may be empty.
type Hunk struct{ OldFrom, OldTo, NewFrom, NewTo int }

// maxTableCells bounds the table for the longest common subsequence; what is
// larger counts as replaced between its common beginning and end.
const maxTableCells = 4_000_000

// Hunks says where two lists differ, by their longest common subsequence, in
// their order; none where they are the same.
func Hunks(old, recent []string) []Hunk {
	from := 0
	for from < len(old) && from < len(recent) && old[from] == recent[from] {
		from++
	}
	oldTo, newTo := len(old), len(recent)
	for oldTo > from && newTo > from && old[oldTo-1] == recent[newTo-1] {
		oldTo, newTo = oldTo-1, newTo-1
	}
	a, b := old[from:oldTo], recent[from:newTo]
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	if len(a) == 0 || len(b) == 0 || len(a) > maxTableCells/len(b) {
		return []Hunk{{from, oldTo, from, newTo}}
	}
	var out []Hunk
	i, j := 0, 0
	start := Hunk{OldFrom: from, NewFrom: from}
	for _, at := range longestCommonSubsequence(a, b) {
		if at.old > i || at.recent > j {
			start.OldTo, start.NewTo = from+at.old, from+at.recent
			out = append(out, start)
		}
		i, j = at.old+1, at.recent+1
		start = Hunk{OldFrom: from + i, NewFrom: from + j}
	}
	if i < len(a) || j < len(b) {
		start.OldTo, start.NewTo = oldTo, newTo
		out = append(out, start)
	}
	return out
}

// commonItem is an item that both lists have.
type commonItem struct{ old, recent int }

// longestCommonSubsequence is the longest common subsequence.
func longestCommonSubsequence(a, b []string) []commonItem {
	width := len(b) + 1
	length := make([]int32, (len(a)+1)*width) // of the common subsequence of what is left
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	var out []commonItem
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			out = append(out, commonItem{i, j})
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return out
}
