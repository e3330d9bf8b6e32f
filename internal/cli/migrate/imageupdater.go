package migrate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// imageUpdaterGroup is Image Updater's API group, and what its annotations begin with (its pkg/common/constants.go).
const (
	imageUpdaterGroup  = "argocd-image-updater.argoproj.io"
	annotationPrefix   = imageUpdaterGroup + "/"
	imageListKey       = "image-list"
	ownFieldsNote      = "Image Updater writes there by itself: take its configuration away when this file is in force, or both write"
	liveOverrideNote   = ownFieldsNote + "; what it wrote into the live Application stays until somebody removes it there"
	regexpPrefix       = "regexp:"
	anyTag             = "."
	prereleaseSuffix   = "-0"
	defaultWriteMethod = "argocd"
)

// imageUpdater is an object of the kind ImageUpdater (api/v1alpha1, v1.0).
type imageUpdater struct {
	object
	Spec struct {
		updateSettings
		Namespace       string `json:"namespace"`
		ApplicationRefs []struct {
			updateSettings
			NamePattern    string                `json:"namePattern"`
			LabelSelectors *metav1.LabelSelector `json:"labelSelectors"`
			UseAnnotations bool                  `json:"useAnnotations"`
			Images         []struct {
				updateSettings
				Alias     string `json:"alias"`
				ImageName string `json:"imageName"`
			} `json:"images"`
		} `json:"applicationRefs"`
	} `json:"spec"`
}

// updateSettings are what an ImageUpdater says for all, for some Applications, or for one image.
type updateSettings struct {
	Common *struct {
		UpdateStrategy string   `json:"updateStrategy"`
		AllowTags      string   `json:"allowTags"`
		IgnoreTags     []string `json:"ignoreTags"`
		PullSecret     string   `json:"pullSecret"`
		Platforms      []string `json:"platforms"`
	} `json:"commonUpdateSettings"`
	WriteBack *struct {
		Method string `json:"method"`
	} `json:"writeBackConfig"`
}

// updateRule is how an image's tags are chosen, as Image Updater says it.
type updateRule struct {
	image, constraint string
	strategy          string
	allow             string
	ignore, platforms []string
	pullSecret        string
	writeMethod       string
}

// refine lays more special settings over what is there.
func (u *updateRule) refine(s updateSettings) {
	if c := s.Common; c != nil {
		u.strategy = cmp.Or(c.UpdateStrategy, u.strategy)
		u.allow = cmp.Or(c.AllowTags, u.allow)
		u.pullSecret = cmp.Or(c.PullSecret, u.pullSecret)
		if len(c.IgnoreTags) > 0 {
			u.ignore = c.IgnoreTags
		}
		if len(c.Platforms) > 0 {
			u.platforms = c.Platforms
		}
	}
	if s.WriteBack != nil {
		u.writeMethod = cmp.Or(s.WriteBack.Method, u.writeMethod)
	}
}

// addImageUpdater adds what Image Updater does by annotations of the Applications, and by ImageUpdaters.
func (m *Manifests) addImageUpdater(c *collector, applications []Application) {
	for i := range applications {
		app := &applications[i]
		for _, u := range rulesOfAnnotations(c, app) {
			u.add(c, app, "Application "+app.Name)
		}
	}
	for i := range m.updaters {
		m.updaters[i].add(c, applications)
	}
}

// add adds what an ImageUpdater does.
func (iu *imageUpdater) add(c *collector, applications []Application) {
	for _, ref := range iu.Spec.ApplicationRefs {
		matched := false
		for i := range applications {
			app := &applications[i]
			namespace := cmp.Or(iu.Spec.Namespace, iu.Metadata.Namespace)
			if app.Namespace != "" && namespace != "" && app.Namespace != namespace {
				continue
			}
			if is, err := path.Match(ref.NamePattern, app.Name); err != nil || !is || !selects(ref.LabelSelectors, app.Labels) {
				continue
			}
			matched = true
			if ref.UseAnnotations {
				continue // the Application's own were read
			}
			for _, image := range ref.Images {
				name, constraint := splitConstraint(image.ImageName)
				u := updateRule{image: name, constraint: constraint}
				for _, s := range []updateSettings{iu.Spec.updateSettings, ref.updateSettings, image.updateSettings} {
					u.refine(s)
				}
				u.add(c, app, iu.String())
			}
		}
		if !matched {
			c.addNote(iu.String(), "no Application of this repository is named like %q", ref.NamePattern)
		}
	}
}

// selects says that labels are selected; one that can't be read selects nothing.
func selects(s *metav1.LabelSelector, of map[string]string) bool {
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(of))
}

// rulesOfAnnotations are what an Application's annotations say of its images.
func rulesOfAnnotations(c *collector, app *Application) []updateRule {
	var out []updateRule
	for text := range strings.SplitSeq(app.Annotations[annotationPrefix+imageListKey], ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		alias, image, hasAlias := strings.Cut(text, "=")
		if !hasAlias {
			alias, image = "", text
		}
		own := func(key string) string {
			general := app.Annotations[annotationPrefix+key]
			if alias == "" {
				return general
			}
			return cmp.Or(app.Annotations[annotationPrefix+strings.ReplaceAll(alias, "/", "_")+"."+key], general)
		}
		u := updateRule{strategy: own("update-strategy"), allow: cmp.Or(own("allow-tags"), own("tag-match")),
			ignore: splitList(own("ignore-tags")), platforms: splitList(own("platforms")), pullSecret: own("pull-secret"),
			writeMethod: app.Annotations[annotationPrefix+"write-back-method"]}
		// Image Updater takes all before the first = for the alias, so that a range like >=1 wants one before it.
		if u.image, u.constraint = splitConstraint(image); u.image == "" || strings.Contains(alias, ":") {
			c.addNote("Application "+app.Name, "%s names no image: %q", imageListKey, text)
			continue
		}
		out = append(out, u)
	}
	return out
}

// splitConstraint takes a constraint from an image's name, as in registry.example:5000/web:~1.2.
func splitConstraint(text string) (image, constraint string) {
	i := strings.LastIndexByte(text, ':')
	if i <= strings.LastIndexByte(text, '/') {
		return text, ""
	}
	return text[:i], text[i+1:]
}

func splitList(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// add adds what is said of one Application's image.
func (u *updateRule) add(c *collector, app *Application, from string) {
	choose, err := u.choose()
	if err != nil {
		c.addNote(from, "what it says of %s can't be said as it is: %v", u.image, err)
		return
	}
	if u.pullSecret != "" {
		c.addNote(from, "%s is read with the pull secret %s: the server's credentials are in its own file, under registries", u.image,
			u.pullSecret)
	}
	if method := cmp.Or(u.writeMethod, defaultWriteMethod); method == defaultWriteMethod {
		c.addNote(from, "%s", liveOverrideNote)
	} else {
		c.addNote(from, "%s", ownFieldsNote)
	}
	c.addRule(app.Environment, Rule{pipeline.Discovery{Image: u.image, Choose: choose, Platforms: u.platforms}, from})
}

// choose is the rule in a pipeline file's words.
func (u *updateRule) choose() (discover.Choose, error) {
	allow := ""
	switch expression, is := strings.CutPrefix(u.allow, regexpPrefix); {
	case is:
		allow = expression
	case u.allow != "" && u.allow != "any":
		return discover.Choose{}, fmt.Errorf("allow-tags: %q is neither any nor regexp:…, so that Image Updater takes no tag at all",
			u.allow)
	}
	out := discover.Choose{Ignore: slices.Clone(u.ignore)}
	switch u.strategy {
	case "", "semver":
		out.SemVer, out.Prerelease = rangeOf(u.constraint)
		out.Tags = allow
	case "newest-build", "latest":
		out.Newest = &discover.Newest{Tags: cmp.Or(allow, anyTag), By: discover.ByCreated}
	case "alphabetical", "name":
		out.Newest = &discover.Newest{Tags: cmp.Or(allow, anyTag), By: discover.ByAlphabet}
	case "digest":
		if u.constraint == "" {
			return out, fmt.Errorf("update-strategy: digest follows one tag, and %s names none", u.image)
		}
		out.Digest, out.Ignore = &discover.FollowedTag{Tag: u.constraint}, nil
	default:
		return out, fmt.Errorf("update-strategy: %q is none that is known: semver, newest-build, alphabetical, digest", u.strategy)
	}
	return out, nil
}

// rangeOf is a constraint as Masterminds' semver reads it: both tools use that. Only a range with x or * can't end with -0 there,
// which is how pre-releases are let in.
func rangeOf(constraint string) (semver string, prerelease bool) {
	text, is := strings.CutSuffix(constraint, prereleaseSuffix)
	if is && strings.ContainsAny(text, "xX*") {
		return text, true
	}
	return cmp.Or(constraint, "*"), false
}
