package propose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Proposal is a pipeline that was inferred, and what speaks for it.
type Proposal struct {
	Name string
	// Sets are where ApplicationSets are; with Plain they are where plain Applications are.
	Sets  []Set
	Plain bool
	// Untold are charts with more of them that are left out: nothing tells how they are installed.
	Untold []pipeline.HelmSource
	// Clusters is the repository's file of Argo CD's clusters; "" where none is needed.
	Clusters string

	Assignment *Assignment
	Steps      Steps
	After      map[string][]string // what comes directly before each environment; nil: all of the step before
	OrderWhy   string
	Discover   map[string][]DiscoverEntry // by environment: what comes in by itself
	Branches   map[string]string          // by environment; empty: they are on the tracked branch
	Carried    *Carried
	Open       Open

	// Header and Notes are what a person should know of the whole, a line each.
	Header, Notes []string
}

// Set is a file of ApplicationSets or plain Applications, a folder that Kustomize builds some of, a
// chart that has some, or a set that runs. It has templates of its own where the pipeline's don't
// fit.
type Set struct {
	Path      string
	Kustomize string
	Helm      *pipeline.HelmSource
	Live      *pipeline.LiveApplicationSet // nil: a file
	// ArgoCD is the name for the one that runs a file's sets; "" where one runs all.
	ArgoCD string
	Templates
}

// DiscoverEntry is an entry of discover, and of what it was made.
type DiscoverEntry struct {
	pipeline.Discovery
	From string
}

// Write is the pipeline file.
func (p *Proposal) Write() []byte {
	w := &writer{}
	for _, line := range p.Header {
		w.writeComment("", line)
	}
	w.writeLine("# yaml-language-server: $schema=%s", pipeline.SchemaURL) // as the language server of most editors reads it
	w.writeLine("apiVersion: %s", pipeline.APIVersion)
	w.writeLine("kind: %s", pipeline.Kind)
	w.writeLine("metadata:")
	w.writeLine("  name: %s", p.Name)
	w.writeLine("spec:")
	w.writeLine("  mode: observe # it says what it would do, and does nothing; without this line it acts")
	p.writeSources(w)
	p.writeTemplates(w)
	p.writeCarry(w)
	p.writeEnvironments(w)
	for _, n := range p.Notes {
		w.writeComment("", n)
	}
	return w.Bytes()
}

// CarryTexts are the entries of carry as the file has them, on one line each.
func (p *Proposal) CarryTexts() []string {
	if p.Carried == nil {
		return nil
	}
	out := make([]string, len(p.Carried.Entries))
	for i, c := range p.Carried.Entries {
		out[i] = carryText(c)
	}
	return out
}

// templates are the pipeline's, as far as they are known.
func (p *Proposal) templates() Templates {
	if p.Assignment == nil {
		return Templates{}
	}
	return p.Assignment.Templates
}

func (p *Proposal) writeSources(w *writer) {
	if p.Open.Charts != nil {
		w.writeOpen(p.Open.Charts)
	}
	if p.Plain {
		w.writeLine("  applications:")
	} else {
		w.writeLine("  applicationSets:")
	}
	for _, s := range p.Sets {
		if s.Kustomize != "" {
			w.writeLine("    - kustomize: %s", quotePath(s.Kustomize))
		} else if s.Helm != nil {
			w.writeLine("    - helm: {%s}%s", HelmText(s.Helm), p.todoAtCharts())
		} else if s.Live != nil {
			w.writeLine("    - live: {namespace: %s, name: %s}", quotePath(s.Live.Namespace), quotePath(s.Live.Name))
		} else {
			w.writeLine("    - path: %s", quotePath(s.Path))
		}
		if s.ArgoCD != "" {
			w.writeLine("      argocd: %s", quotePath(s.ArgoCD))
		}
		if s.Component != "" && s.Component != p.templates().Component {
			w.writeLine("      component: %s", quoteTemplate(s.Component))
		}
		if s.Environment != "" && s.Environment != p.templates().Environment {
			w.writeLine("      environment: %s", quoteTemplate(s.Environment))
		}
	}
	for i := range p.Untold {
		w.writeComment("    ", fmt.Sprintf("TODO: %s has more of them, and no Application here tells how that chart is installed. With "+
			"what it is given there:", p.Untold[i].Path))
		w.writeLine("    # - helm: {%s}", HelmText(&p.Untold[i]))
	}
	if p.Open.Clusters != nil {
		w.writeOpen(p.Open.Clusters)
		w.writeLine("  clusters: %s %s", quotePath(p.Clusters), todo)
	} else if p.Clusters != "" {
		w.writeComment("  ", "Argo CD's clusters, for the command line: the server knows them itself.")
		w.writeLine("  clusters: %s", quotePath(p.Clusters))
	}
}

// todoAtCharts marks the entries of charts where somebody has to say how they are installed.
func (p *Proposal) todoAtCharts() string {
	if p.Open.Charts == nil {
		return ""
	}
	return " " + todo
}

// HelmText is what an entry says of a chart, in flow style.
func HelmText(h *pipeline.HelmSource) string {
	parts := []string{"path: " + quotePath(h.Path)}
	if len(h.ValueFiles) > 0 {
		parts = append(parts, "valueFiles: "+flowList(h.ValueFiles))
	}
	if len(h.Values) > 0 {
		parts = append(parts, "values: "+quoteJSON(h.Values))
	}
	if h.ReleaseName != "" {
		parts = append(parts, "releaseName: "+quoteText(h.ReleaseName))
	}
	if usual := (pipeline.HelmSource{}); h.Namespace != "" {
		if usual.SetDefaults(); h.Namespace != usual.Namespace {
			parts = append(parts, "namespace: "+quoteText(h.Namespace))
		}
	}
	return strings.Join(parts, ", ")
}

// carryText is an entry of carry in flow style, as the documentation has it.
func carryText(c Carry) string {
	switch {
	case len(c.KustomizeImages) > 0:
		return "kustomizeImages: " + flowList(c.KustomizeImages)
	case len(c.KustomizeRefs) > 0:
		return "kustomizeRefs: " + flowList(c.KustomizeRefs)
	case c.Files != nil:
		return fmt.Sprintf("files: {include: %s}", flowList(c.Files.Include))
	case c.JSON != nil:
		return fmt.Sprintf("json: {files: %s, paths: %s}", flowList(c.JSON.Files), flowList(c.JSON.Paths))
	default:
		return fmt.Sprintf("yaml: {files: %s, paths: %s}", flowList(c.YAML.Files), flowList(c.YAML.Paths))
	}
}

// chooseText is a rule in flow style, as the documentation has it.
func chooseText(c *discover.Choose) string {
	var parts []string
	switch {
	case c.Newest != nil:
		parts = append(parts, fmt.Sprintf("newest: {tags: %s, by: %s}", quoteTemplate(c.Newest.Tags), c.Newest.By))
	case c.Digest != nil:
		parts = append(parts, fmt.Sprintf("digest: {tag: %s}", quoteText(c.Digest.Tag)))
	default:
		parts = append(parts, "semver: "+quoteText(c.SemVer))
	}
	if c.Prerelease {
		parts = append(parts, "prerelease: true")
	}
	if c.Tags != "" {
		parts = append(parts, "tags: "+quoteTemplate(c.Tags))
	}
	if len(c.Ignore) > 0 {
		parts = append(parts, "ignore: "+flowList(c.Ignore))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

type writer struct{ bytes.Buffer }

func (w *writer) writeLine(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// commentWidth is where comments are wrapped.
const commentWidth = 110

// writeComment writes a text as comments, wrapped at its spaces. It may hold what is written in the
// repository, so that it is made one line first.
func (w *writer) writeComment(indent, text string) {
	line := indent + "#"
	for _, word := range strings.Fields(appset.Printable(text)) {
		if len(line)+1+len(word) > commentWidth && line != indent+"#" {
			w.writeLine("%s", line)
			line = indent + "#"
		}
		line += " " + word
	}
	w.writeLine("%s", line)
}

func capitalize(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// quoteTemplate writes a template in single quotes, in which YAML escapes nothing else.
func quoteTemplate(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// quoteText writes a text in double quotes: every JSON string is one of YAML. What JSON would
// escape for HTML's sake stays.
func quoteText(s string) string { return quoteJSON(s) }

// quoteJSON writes what came of JSON, which YAML reads as it is.
func quoteJSON(value any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // it is always written
	return strings.TrimSpace(b.String())
}

// quotePath leaves a path as it is where YAML reads it so.
func quotePath(s string) string {
	for _, r := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-", r) {
			return quoteText(s)
		}
	}
	return s
}

func flowList(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quoteText(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
