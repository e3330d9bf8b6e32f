package appset

import (
	"fmt"
	"hash/maphash"
	"strings"
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
	case string:
		return maphash.String(paramsSeed, v)
	case map[string]any:
		return hashMap(v)
	case []any:
		h := uint64(len(v))
		for _, e := range v {
			h = mixHashes(h, hashValue(e))
		}
		return h
	case []string:
		return maphash.String(paramsSeed, strings.Join(v, "\x00"))
	}
	return maphash.String(paramsSeed, fmt.Sprint(v))
}

// mixHashes combines two hashes, in order.
func mixHashes(a, b uint64) uint64 { return maphash.Comparable(paramsSeed, [2]uint64{a, b}) }
