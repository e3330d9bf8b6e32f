package graph

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFewEnvironmentsStayApart(t *testing.T) {
	for _, g := range Collapse(nodesOf("dev", "qa dev", "prod-eu qa", "prod-us qa"), 4) {
		if len(g.Members) != 1 || g.Members[0] != g.ID {
			t.Errorf("%s has %v", g.ID, g.Members)
		}
	}
}

// Two hundred shops behind two waves are four boxes, with the edges of their members.
func TestManyEnvironmentsCollapse(t *testing.T) {
	nodes := nodesOf("dev", "qa dev")
	for i := range 100 {
		nodes = append(nodes, Node{ID: fmt.Sprintf("canary-%d", i), After: []string{"qa"}})
	}
	for i := range 100 {
		nodes = append(nodes, Node{ID: fmt.Sprintf("store-eu-%d", i), After: []string{fmt.Sprintf("canary-%d", i)}})
	}
	var got []string
	for _, g := range Collapse(nodes, 12) {
		got = append(got, fmt.Sprint(g.ID, " ", len(g.Members), " ", g.After))
	}
	if diff := cmp.Diff([]string{"dev 1 []", "qa 1 [dev]", "canary-* 100 [qa]", "store-eu-* 100 [canary-*]"}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// TestAlikeNamesInOtherPlacesStayApart holds that nodes that come after different ones are
// different groups, however alike their names are.
func TestAlikeNamesInOtherPlacesStayApart(t *testing.T) {
	nodes := nodesOf("dev", "p-1 dev", "p-2 dev", "p-3 p-1", "p-4 p-1")
	var got []string
	for _, g := range Collapse(nodes, 3) {
		got = append(got, fmt.Sprintf("%s%v%v", g.ID, g.Members, g.After))
	}
	if diff := cmp.Diff([]string{"dev[dev][]", "p-*[p-1 p-2][dev]", "p-* (p-3)[p-3 p-4][p-*]"}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if i := Find(Collapse(nodes, 3), "p-4"); i != 2 {
		t.Errorf("p-4 is in group %d", i)
	}
}

// Whatever is folded, every environment is in one group, and its picture is clear.
func TestFoldingLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		groups := Collapse(nodes, rapid.IntRange(1, 6).Draw(t, "most"))
		seen := map[string]int{}
		drawn := make([]Node, 0, len(groups))
		for _, g := range groups {
			drawn = append(drawn, g.Node)
			for _, m := range g.Members {
				seen[m]++
			}
		}
		for _, n := range nodes {
			if seen[n.ID] != 1 {
				t.Fatalf("%s is in %d groups", n.ID, seen[n.ID])
			}
			to := groups[Find(groups, n.ID)]
			for _, a := range n.After {
				from := groups[Find(groups, a)]
				if !slices.Contains(to.After, from.ID) {
					t.Fatalf("%s comes after %s, but %s not after %s", n.ID, a, to.ID, from.ID)
				}
			}
		}
		mustBeClear(t, Arrange(drawn, sizes))
	})
}
