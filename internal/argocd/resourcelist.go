package argocd

import (
	"bytes"
	"encoding/json"
)

// wireResource is one resource of an Application.
type wireResource struct {
	Group     string      `json:"group"`
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Health    *wireHealth `json:"health"`

	Status          string `json:"status"`
	Hook            bool   `json:"hook"`
	RequiresPruning bool   `json:"requiresPruning"`
}

// Resources of which nothing is kept have these fields, as Argo CD writes them. Within a text the
// quotes would be escaped, so none of it is found there.
var (
	syncedField       = []byte(`"status":"Synced"`)
	outOfSyncField    = []byte(`"status":"OutOfSync"`)
	healthyField      = []byte(`"health":{"status":"Healthy"}`)
	applicationField  = []byte(`"kind":"Application"`)
	applicationFields = []byte(`"argoproj.io"`)
)

// mayBeSkipped says, of a resource's JSON, that nothing of it is kept: it is in sync, healthy as far as that is
// kept there, and no Application. It is called for every resource, so that it stops at the first that differs.
func mayBeSkipped(element []byte, healthInTree bool) bool {
	if !bytes.Contains(element, syncedField) || bytes.Contains(element, outOfSyncField) {
		return false
	}
	if !healthInTree && !bytes.Contains(element, healthyField) {
		return false
	}
	return !bytes.Contains(element, applicationField) || !bytes.Contains(element, applicationFields)
}

// decodeResources decodes the resources of an Application of which something is kept, and maybe
// others. Most are as they should be, and decoding those is most of the work of a list. Skipped
// ones are only known to have their texts and brackets ended.
func decodeResources(raw json.RawMessage, healthInTree bool) ([]wireResource, error) {
	var out []wireResource
	err := eachElement(raw, func(element []byte) error {
		if mayBeSkipped(element, healthInTree) {
			return nil
		}
		var r wireResource
		if err := json.Unmarshal(element, &r); err != nil {
			return err
		}
		out = append(out, r)
		return nil
	})
	return out, err
}

// eachElement gives the elements of a list. Anything but a list is decoded as one, for the error
// that it makes.
func eachElement(list []byte, each func(element []byte) error) error {
	list = bytes.TrimSpace(list)
	if len(list) == 0 || list[0] != '[' {
		return decodeNoList(list)
	}
	return eachPart(list, func(start, end int) error { return each(list[start:end]) })
}

// eachPart gives where the elements of a list are in it, or the members of an object, without
// the spaces around them.
func eachPart(of []byte, each func(start, end int) error) error {
	depth, start := 0, 0
	for i := 0; i < len(of); i++ {
		switch c := of[i]; {
		case c == '"':
			i += textEnd(of[i:])
		case c == '[', c == '{':
			if depth++; depth == 1 {
				start = i + 1
			}
		case c == ']', c == '}', c == ',' && depth == 1:
			if c == ',' || depth == 1 {
				part := bytes.TrimLeft(of[start:i], jsonSpaces)
				from := i - len(part)
				if part = bytes.TrimRight(part, jsonSpaces); len(part) > 0 {
					if err := each(from, from+len(part)); err != nil {
						return err
					}
				}
				start = i + 1
			}
			if c != ',' {
				depth--
			}
		}
	}
	return nil
}

// textEnd is where the text that begins something ends: at its closing quote, or behind all.
func textEnd(of []byte) int {
	for end := 1; ; {
		next := bytes.IndexByte(of[end:], '"')
		if next < 0 {
			return len(of)
		}
		end += next
		escapes := 0
		for of[end-1-escapes] == '\\' { // the text's own quote ends that at the latest
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
		end++
	}
}

const jsonSpaces = " \t\r\n"

// findMember is where the value of an object's member is; false where it has none, or several.
func findMember(object []byte, quoted string) (start, end int, ok bool) {
	found := 0
	_ = eachPart(object, func(from, to int) error {
		member := object[from:to]
		if !bytes.HasPrefix(member, []byte(quoted)) {
			return nil
		}
		if value := bytes.TrimLeft(member[len(quoted):], jsonSpaces); len(value) > 0 && value[0] == ':' {
			found++
			value = bytes.TrimLeft(value[1:], jsonSpaces)
			start, end = to-len(value), to
		}
		return nil
	})
	return start, end, found == 1
}

// cutResources takes the list of an Application's resources out of it. Nearly all of the object is
// there, and the standard library goes over each byte three times. nil: there is no such list, and
// the rest is the whole.
func cutResources(raw []byte) (rest, resources []byte) {
	s, sEnd, ok := findMember(raw, `"status"`)
	if !ok || raw[s] != '{' {
		return raw, nil
	}
	r, rEnd, ok := findMember(raw[s:sEnd], `"resources"`)
	if !ok || raw[s+r] != '[' {
		return raw, nil
	}
	resources = raw[s+r : s+rEnd]
	rest = make([]byte, 0, len(raw)-len(resources)+len("null"))
	rest = append(append(append(rest, raw[:s+r]...), "null"...), raw[s+rEnd:]...)
	return rest, resources
}

func decodeNoList(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	var list []json.RawMessage
	return json.Unmarshal(raw, &list)
}
