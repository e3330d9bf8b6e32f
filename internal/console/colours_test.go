package console

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestColoursAreReadable holds what the style sheet says of itself: text on its
// ground has a contrast of at least 4.5:1 in both looks (WCAG 2.2, 1.4.3).
func TestColoursAreReadable(t *testing.T) {
	css, err := embeddedFiles.ReadFile("assets/console.css")
	if err != nil {
		t.Fatal(err)
	}
	looks := strings.SplitN(string(css), "@media (prefers-color-scheme: dark)", 2)
	if len(looks) != 2 {
		t.Fatal("there is no dark look")
	}
	colour := regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6})`)
	for i, name := range []string{"light", "dark"} {
		c := map[string]string{}
		for _, m := range colour.FindAllStringSubmatch(looks[i], -1) {
			c[m[1]] = m[2]
		}
		pairs := [][2]string{{"text", "ground"}, {"text", "panel"}, {"muted", "ground"}, {"muted", "panel"}, {"link", "ground"}, {"link", "panel"}, {"text", "bad-bg"}, {"muted", "bad-bg"}, {"text", "quiet-bg"}, {"bad", "panel"}}
		for _, tone := range []string{"ok", "busy", "wait", "hold", "bad", "undo", "hand", "quiet"} {
			pairs = append(pairs, [2]string{tone, tone + "-bg"})
		}
		for _, p := range pairs {
			if r := contrast(t, c[p[0]], c[p[1]]); r < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", name, p[0], p[1], r)
			}
		}
	}
}

// contrast is WCAG's contrast ratio of two colours.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatalf("a colour is missing: %v", err)
	}
	part := func(shift int, weight float64) float64 {
		v := float64(n>>shift&0xff) / 255
		if v <= .04045 {
			return weight * v / 12.92
		}
		return weight * math.Pow((v+.055)/1.055, 2.4)
	}
	return part(16, .2126) + part(8, .7152) + part(0, .0722)
}
