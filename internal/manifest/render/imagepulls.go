package render

import (
	"slices"
	"strings"
)

// pullFields are parts of paths of what decides, besides its name, how and where an image is
// pulled: with which credentials, and for which kind of node.
var pullFields = []string{"imagePull", "nodeSelector", "nodeName", "affinity", "tolerations", "runtimeClassName"}

// MayExplainPull says that the changes may be why an image can't be pulled: they bring it, or a
// part of its name, or touch how it is pulled. Clipped or hidden fields may do so too.
func (c *Changes) MayExplainPull(image string) bool {
	if len(c.LeftOut) > 0 {
		return true
	}
	return slices.ContainsFunc(c.Objects, func(o Change) bool {
		return o.Kind == "Secret" || o.Kind == "ServiceAccount" || o.MoreFields > 0 || slices.ContainsFunc(o.Fields, func(f Field) bool {
			return f.Hidden || slices.ContainsFunc(pullFields, func(part string) bool { return strings.Contains(f.Path, part) }) ||
				bringsImage(f.New, image)
		})
	})
}

// bringsImage says that a value has an image's name, or a part of it, in any of its texts. A
// single letter or digit is a part of too many.
func bringsImage(value any, image string) bool {
	switch value := value.(type) {
	case string:
		return strings.Contains(value, image) || len(value) > 1 && strings.Contains(image, value)
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return bringsImage(item, image) })
	case map[string]any:
		for key, item := range value {
			if slices.ContainsFunc(pullFields, func(part string) bool { return strings.Contains(key, part) }) || bringsImage(item, image) {
				return true
			}
		}
	}
	return false
}
