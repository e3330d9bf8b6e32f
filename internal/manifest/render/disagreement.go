package render

import (
	"reflect"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// maxDisagreements bounds the objects that are named.
const maxDisagreements = 3

// DescribeDisagreement says how two renderings of one change part: the one made here, and another
// one; "" where they say the same. Where values may be hidden in the other one, the fields' names
// alone are compared. It says nothing of changes that were clipped.
func DescribeDisagreement(here, other *Changes, namesOnly bool) string {
	if here == nil || other == nil || len(here.LeftOut) > 0 || len(other.LeftOut) > 0 {
		return ""
	}
	var only, lacks, parts []string
	for i := range here.Objects {
		h := &here.Objects[i]
		switch o := findChange(other, h); {
		case o == nil:
			only = append(only, describeChange(h))
		case h.MoreFields == 0 && o.MoreFields == 0 && !sameFields(h, o, namesOnly):
			parts = append(parts, h.Kind+" "+h.Name)
		}
	}
	for i := range other.Objects {
		if o := &other.Objects[i]; findChange(here, o) == nil {
			lacks = append(lacks, describeChange(o))
		}
	}
	var said []string
	for _, list := range []struct {
		what  string
		names []string
	}{{"only Liftlock's rendering has ", only}, {"only Argo CD's has ", lacks}, {"other fields differ of ", parts}} {
		if len(list.names) > 0 {
			said = append(said, list.what+wording.JoinFew(list.names, maxDisagreements))
		}
	}
	return strings.Join(said, "; ")
}

func describeChange(c *Change) string { return c.Kind + " " + c.Name + " " + string(c.Op) }

func findChange(in *Changes, c *Change) *Change {
	at := slices.IndexFunc(in.Objects, func(o Change) bool {
		mayBeInNamespace := o.Namespace == c.Namespace || o.Namespace == "" || c.Namespace == ""
		return mayBeInNamespace && o.Kind == c.Kind && o.Name == c.Name && o.Op == c.Op
	})
	if at < 0 {
		return nil
	}
	return &in.Objects[at]
}

func sameValues(a, b Field) bool {
	return reflect.DeepEqual(a.Old, b.Old) && reflect.DeepEqual(a.New, b.New)
}

// sameFields says that two changes of an object are of the same fields with the same values. The
// fields of objects that come or go aren't compared: an Argo CD adds its own.
func sameFields(a, b *Change, namesOnly bool) bool {
	if a.Op != Changed {
		return true
	}
	return slices.EqualFunc(a.Fields, b.Fields, func(a, b Field) bool {
		isHidden := a.Hidden || b.Hidden
		return a.Path == b.Path && (namesOnly || isHidden || sameValues(a, b))
	})
}
