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

// What a resource of which nothing is kept has, as Argo CD writes it. Within a text the quotes
// would be escaped, so none of it is found there.
var (
	syncedField       = []byte(`"status":"Synced"`)
	outOfSyncField    = []byte(`"status":"OutOfSync"`)
	healthyField      = []byte(`"health":{"status":"Healthy"}`)
	applicationField  = []byte(`"kind":"Application"`)
	applicationFields = []byte(`"argoproj.io"`)
)

// decodeResources decodes the resources of an Application of which something is kept, and maybe
// others: most are as they should be, and decoding those is most of the work of a list.
func decodeResources(raw json.RawMessage, healthInTree bool) ([]wireResource, error) {
	var out []wireResource
	err := eachElement(raw, func(element []byte) error {
		if bytes.Contains(element, syncedField) && !bytes.Contains(element, outOfSyncField) && (healthInTree || bytes.Contains(element, healthyField)) &&
			!(bytes.Contains(element, applicationField) && bytes.Contains(element, applicationFields)) {
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

// eachElement gives the elements of a list, which is known to be JSON. What is no list is
// decoded as one, for the error that it makes.
func eachElement(list []byte, each func(element []byte) error) error {
	list = bytes.TrimSpace(list)
	if len(list) == 0 || list[0] != '[' {
		return decodeNoList(list)
	}
	depth, inText, start := 0, false, 0
	for i := 0; i < len(list); i++ {
		c := list[i]
		switch {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '[', c == '{':
			if depth++; depth == 1 {
				start = i + 1
			}
		case c == ']', c == '}', c == ',' && depth == 1:
			if c == ',' || depth == 1 {
				if element := bytes.TrimSpace(list[start:i]); len(element) > 0 {
					if err := each(element); err != nil {
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

func decodeNoList(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	var list []json.RawMessage
	return json.Unmarshal(raw, &list)
}
