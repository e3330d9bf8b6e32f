package appset

import (
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
)

// Parameters are compared by what they say and by its types, since a template
// can tell a list of strings from a list of anything. Hashes only narrow down
// what is compared.

var paramsSeed = maphash.MakeSeed()

func hashMap(m map[string]any) uint64 {
	h := uint64(len(m))
	for k, v := range m { // the order is random: the sum doesn't depend on it
		h += mixHashes(maphash.String(paramsSeed, k), hashValue(v))
	}
	return h
}

func hashValue(v any) uint64 {
	switch v := v.(type) {
	case nil:
		return 1
	case string:
		return maphash.String(paramsSeed, v)
	case bool:
		if v {
			return 3
		}
		return 2
	case float64:
		return mixHashes(4, math.Float64bits(v))
	case map[string]any:
		return mixHashes(5, hashMap(v))
	case map[string]string:
		h := uint64(len(v))
		for k, s := range v {
			h += mixHashes(maphash.String(paramsSeed, k), maphash.String(paramsSeed, s))
		}
		return mixHashes(6, h)
	case []string:
		h := uint64(7)
		for _, s := range v {
			h = mixHashes(h, maphash.String(paramsSeed, s))
		}
		return h
	case []any:
		h := uint64(8)
		for _, e := range v {
			h = mixHashes(h, hashValue(e))
		}
		return h
	}
	return maphash.String(paramsSeed, fmt.Sprintf("%T%v", v, v))
}

// mixHashes combines two hashes, in order.
func mixHashes(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 ^ b
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

func equalMaps(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		w, there := b[k]
		if !there || !equalValues(v, w) {
			return false
		}
	}
	return true
}

func equalValues(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMaps(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalValues(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]string:
		b, ok := b.(map[string]string)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, there := b[k]; !there || v != w {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}
