package policies

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestKinds holds that each key of a gate is a kind, which answers by its own name.
func TestKinds(t *testing.T) {
	var keys []GateName
	for i := range reflect.TypeFor[Gate]().NumField() {
		key, _, _ := strings.Cut(reflect.TypeFor[Gate]().Field(i).Tag.Get("yaml"), ",")
		keys = append(keys, GateName(key))
		var g Gate
		field := reflect.ValueOf(&g).Elem().Field(i)
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
		} else {
			field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		}
		if g.Name() != GateName(key) {
			t.Errorf("a gate with the key %s is called %q", key, g.Name())
		}
	}
	if !slices.Equal(keys, Kinds()) {
		t.Errorf("a gate has the keys %v, and the kinds are %v", keys, Kinds())
	}
}
