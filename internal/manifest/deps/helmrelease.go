package deps

import (
	"slices"
	"strings"
)

// resolveHelmReleases draws the conclusions that need all charts of a reader.
func (b *builder) resolveHelmReleases() {
	known := map[uint32]map[string]traits{}
	for n := range b.readers {
		at := &b.nodes[n]
		at.releaseUses = nil
		also := at.traits
		var charts []uint32
		for _, u := range at.uses {
			switch b.nodes[u].key.role {
			case roleChart:
				charts = append(charts, u)
			case roleValues:
				also |= b.nodes[u].traits
			case roleValueGlob:
				for _, file := range b.nodes[u].uses {
					also |= b.nodes[file].traits
				}
			}
		}
		var late []uint32
		for _, c := range charts {
			if known[c] == nil {
				known[c] = b.chartsBelow(c)
			}
			for _, k := range helmReleaseReads(known[c], also) {
				late = append(late, b.numberNode(k))
			}
		}
		b.nodes[n].releaseUses = late
	}
}

// chartsBelow finds a chart and those that it depends on, by folder.
func (b *builder) chartsBelow(c uint32) map[string]traits {
	out := map[string]traits{}
	seen := map[uint32]bool{c: true}
	for all := []uint32{c}; len(all) > 0; {
		at := &b.nodes[all[0]]
		all = all[1:]
		out[at.key.dir] |= at.traits
		for _, u := range at.uses {
			if b.nodes[u].key.role == roleChart && !seen[u] {
				seen[u] = true
				all = append(all, u)
			}
		}
	}
	return out
}

// helmReleaseReads says which further folders a Helm release reads: those of all its
// charts, when any template may read a file by a name that isn't known. charts
// are the folders with their charts' traits, also is what is known besides.
func helmReleaseReads(charts map[string]traits, known traits) []nodeKey {
	all := known
	for _, t := range charts {
		all |= t
	}
	spread := all&readsOtherCharts != 0 || all&usesTpl != 0 && all&mentionsFiles != 0
	var out []nodeKey
	for dir, t := range charts {
		if spread || t&readsFiles != 0 {
			out = append(out, nodeKey{role: roleEverything, dir: dir})
		}
	}
	slices.SortFunc(out, func(a, b nodeKey) int { return strings.Compare(a.dir, b.dir) })
	return out
}
