package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/manifest/textdiff"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxClippedValue bounds one value of clipped changes, in bytes: a text for people shows no
// more of an object.
const maxClippedValue = 8 << 10

// Clip are changes with so many bytes of values at most, about, for who keeps many of them
// to show them. The objects and fields after that are counted only.
func (c *Changes) Clip(most int) *Changes {
	if c == nil {
		return nil
	}
	out := &Changes{Objects: []Change{}}
	for i := range c.Objects {
		if most <= 0 {
			if out.LeftOut == nil {
				out.LeftOut = map[Op]int{}
			}
			out.LeftOut[c.Objects[i].Op]++
			continue
		}
		o := c.Objects[i]
		most -= 100 + len(o.APIVersion) + len(o.Kind) + len(o.Namespace) + len(o.Name)
		o.Fields = make([]Field, 0, min(len(o.Fields), 16))
		for k, f := range c.Objects[i].Fields {
			if most <= 0 {
				o.MoreFields = len(c.Objects[i].Fields) - k
				break
			}
			var size int
			f, size = f.clip(min(most, maxClippedValue))
			most -= size
			o.Fields = append(o.Fields, f)
		}
		out.Objects = append(out.Objects, o)
	}
	return out
}

// clip is a field with so many bytes a value at most, and its size.
func (f Field) clip(most int) (Field, int) {
	f.Path = wording.Clip(f.Path, maxClippedValue)
	size := 50 + len(f.Path)
	old, wasText := f.Old.(string)
	recent, isText := f.New.(string)
	if wasText && isText && len(old)+len(recent) > most {
		f.Old, f.New = differingLines(old, recent)
	}
	for _, value := range []*any{&f.Old, &f.New} {
		if *value != nil {
			c := valueClipper{left: most}
			*value = c.clip(*value)
			size += most - c.left
		}
	}
	return f, size
}

// differingLines are the lines of two texts that differ, as the text of a difference has them:
// the start of both is most often the same.
func differingLines(old, recent string) (went, came string) {
	a, b := strings.Split(old, "\n"), strings.Split(recent, "\n")
	var removed, added []string
	for _, h := range textdiff.Hunks(a, b) {
		removed, added = append(removed, a[h.OldFrom:h.OldTo]...), append(added, b[h.NewFrom:h.NewTo]...)
	}
	for _, lines := range [][]string{removed, added} {
		for i, l := range lines {
			lines[i] = wording.Clip(l, maxValueRunes*4)
		}
	}
	return strings.Join(removed, "\n"), strings.Join(added, "\n")
}

// valueClipper takes the start of values until its bytes are used up.
type valueClipper struct{ left int }

func (vc *valueClipper) clip(value any) any {
	more := func(n int) string { return fmt.Sprintf("… and %d more", n) }
	vc.left -= 8
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		keys := sortedKeys(v)
		for i, key := range keys {
			if vc.left <= 0 {
				out["…"] = more(len(keys) - i)
				break
			}
			vc.left -= len(key)
			out[wording.Clip(key, maxClippedValue)] = vc.clip(v[key])
		}
		return out
	case []any:
		out := []any{}
		for i, item := range v {
			if vc.left <= 0 {
				return append(out, more(len(v)-i))
			}
			out = append(out, vc.clip(item))
		}
		return out
	case string:
		text := wording.Clip(v, max(vc.left, 100))
		vc.left -= len(text)
		return strings.Clone(text) // and not all of what it is a part of
	case json.Number:
		vc.left -= len(v)
	}
	return value
}
