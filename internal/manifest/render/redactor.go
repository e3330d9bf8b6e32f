package render

import (
	"regexp"
	"slices"
)

// Placeholder stands for a secret value within a larger one.
const Placeholder = "(hidden)"

// redactor knows at each place of an object whether its value is a secret:
// everything under data, stringData and encryptedData of Secrets and of the
// kinds that become Secrets, the values of environment variables whose names
// sound secret, and entries of ConfigMaps under such names.
type redactor struct {
	kind         string
	hidden       bool
	depth        int
	inConfigData bool // within a ConfigMap's data
}

// secretKinds hold what only few may read, as it is or encrypted.
var secretKinds = []string{"Secret", "SealedSecret", "SopsSecret"}

// secretNamePattern matches names whose values had better not be shown.
var secretNamePattern = regexp.MustCompile(`(?i)passw(or)?d|passphrase|secret|token|credential|api[-_.]?key|private[-_.]?key|access[-_.]?key`)

func newRedactor(o *Object) redactor { return redactor{kind: o.Kind} }

// enterKey goes into one field of a mapping.
func (v redactor) enterKey(parent map[string]any, key string) redactor {
	out := v
	out.depth++
	out.inConfigData = v.depth == 0 && v.kind == "ConfigMap" && (key == "data" || key == "binaryData")
	switch {
	case v.hidden:
	case slices.Contains(secretKinds, v.kind):
		out.hidden = key == "data" || key == "stringData" || key == "encryptedData" || key == "kubectl.kubernetes.io/last-applied-configuration"
	case v.inConfigData:
		out.hidden = secretNamePattern.MatchString(key)
	case key == "value":
		name, _ := parent["name"].(string)
		out.hidden = secretNamePattern.MatchString(name)
	}
	return out
}

// enterEither goes into a field that both sides have: it is hidden when either
// side's is.
func (v redactor) enterEither(a, b map[string]any, key string) redactor {
	out := v.enterKey(a, key)
	out.hidden = out.hidden || v.enterKey(b, key).hidden
	return out
}

// maskSecrets is a value with what is secret in it replaced; keys stay.
func (v redactor) maskSecrets(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			out[key] = v.enterKey(value, key).maskSecrets(item)
		}
		return out
	case []any:
		if v.hidden {
			break
		}
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = v.maskSecrets(item)
		}
		return out
	}
	if v.hidden {
		return Placeholder
	}
	return value
}
