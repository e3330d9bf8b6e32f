package checkout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/wording"
)

// targetRow is one target, and the pipeline that it is shown for.
type targetRow struct {
	pipeline string
	target   *appset.Target
}

// targetRows are all targets by name.
func (re *Resolution) targetRows() []targetRow {
	var out []targetRow
	for _, f := range re.PipelineTargets {
		for i := range f.Targets {
			t := &f.Targets[i]
			r := targetRow{target: t}
			if t.Managed() {
				r.pipeline = f.Pipeline
			}
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b targetRow) int {
		return cmp.Or(cmp.Compare(a.target.Name, b.target.Name), cmp.Compare(a.target.ID(), b.target.ID()),
			cmp.Compare(a.pipeline, b.pipeline))
	})
	return out
}

type tableColumn struct {
	title string
	of    func(r targetRow) string
}

// columns are those of the table; one that is empty for every target is left out.
var columns = []tableColumn{
	{"NAME", func(r targetRow) string { return r.target.Name }},
	{"PIPELINE", func(r targetRow) string { return r.pipeline }},
	{"COMPONENT", func(r targetRow) string { return r.target.Component }},
	{"ENVIRONMENT", func(r targetRow) string { return r.target.Environment }},
	{"ARGOCD", func(r targetRow) string { return r.target.ArgoCD }},
	{"CLUSTER", func(r targetRow) string { return clusterName(r.target) }},
	{"NAMESPACE", func(r targetRow) string { return r.target.DestNS }},
	{"SOURCE", func(r targetRow) string { return describeSources(r.target.Sources) }},
	{"APPLICATIONSET", func(r targetRow) string { return r.target.ApplicationSet }},
}

// WriteTable writes the targets for people, and how many there are.
func WriteTable(w io.Writer, a *Resolution) error { return a.writeTable(w, columns, false) }

// WriteWideTable is the same with all columns, also empty ones, and the files of the ApplicationSets.
func WriteWideTable(w io.Writer, a *Resolution) error {
	file := tableColumn{"FILE", func(r targetRow) string { return r.target.ApplicationSetFile }}
	return a.writeTable(w, append(slices.Clone(columns), file), true)
}

func (re *Resolution) writeTable(w io.Writer, columns []tableColumn, wide bool) error {
	rows := re.targetRows()
	several := len(re.PipelineTargets) > 1
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(rows) > 0 {
		shown := slices.Clone(columns)
		for i := len(shown) - 1; i >= 0 && !wide; i-- {
			empty := !slices.ContainsFunc(rows, func(r targetRow) bool { return shown[i].of(r) != "" })
			if empty || shown[i].title == "PIPELINE" && !several {
				shown = slices.Delete(shown, i, i+1)
			}
		}
		var line []string
		for _, c := range shown {
			line = append(line, c.title)
		}
		fmt.Fprintln(tab, strings.Join(line, "\t"))
		for _, r := range rows {
			line = line[:0]
			for _, c := range shown {
				line = append(line, appset.Printable(cmp.Or(c.of(r), "-")))
			}
			fmt.Fprintln(tab, strings.Join(line, "\t"))
		}
		if err := tab.Flush(); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
		b.WriteByte('\n')
	}
	b.WriteString(re.summaryLine(rows) + "\n")
	if _, err := io.WriteString(w, trimLines(b.String())); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// trimLines takes away the spaces that a table's last column is filled up with.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// summaryLine counts what the rows show.
func (re *Resolution) summaryLine(rows []targetRow) string {
	applications, sets, components, environments, unmanaged := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, 0
	for _, r := range rows {
		t := r.target
		applications[t.ID()] = true
		if t.ApplicationSet != "" {
			sets[t.ApplicationSetFile+"\x00"+t.ApplicationSet] = true
		}
		if !t.Managed() {
			unmanaged++
			continue
		}
		components[r.pipeline+"\x00"+t.Component], environments[r.pipeline+"\x00"+t.Environment] = true, true
	}
	s := wording.Count(len(applications), "Application")
	if len(sets) > 0 {
		s += " of " + wording.Count(len(sets), "ApplicationSet")
	}
	s += " in " + re.Tree
	if len(components) > 0 {
		s += ": " + wording.Count(len(components), "component") + " in " + wording.Count(len(environments), "environment")
		if unmanaged > 0 {
			s += fmt.Sprintf(", %d in no pipeline", unmanaged)
		}
	}
	return s + "."
}

// inCluster is how Argo CD writes the cluster that it runs in.
const inCluster = "https://kubernetes.default.svc"

func clusterName(t *appset.Target) string {
	if t.Cluster == "" && t.Server == inCluster {
		return "in-cluster"
	}
	return cmp.Or(t.Cluster, t.Server)
}

// describeSources names sources shortly: a path of this repository, or what is
// taken from elsewhere.
func describeSources(sources []appset.Source) string {
	var out []string
	for _, s := range sources {
		switch {
		case s.Chart != "":
			out = append(out, "chart "+s.Chart+"@"+s.TargetRevision)
		case s.Here && s.Path != "":
			out = append(out, s.Path)
		case s.Ref != "" && s.Path == "":
		default:
			out = append(out, s.RepoURL+"//"+s.Path)
		}
	}
	return strings.Join(out, ", ")
}

// applicationManifests are the Applications by name, each once. Resolve must have been
// asked for them.
func (re *Resolution) applicationManifests() []json.RawMessage {
	out := []json.RawMessage{}
	seen := map[string]bool{}
	for _, r := range re.targetRows() {
		if id := r.target.ID(); !seen[id] {
			seen[id] = true
			out = append(out, r.target.Application)
		}
	}
	return out
}

// WriteYAML writes the Applications as kubectl apply takes them, a document each.
func WriteYAML(w io.Writer, a *Resolution) error {
	for _, m := range a.applicationManifests() {
		raw, err := yaml.JSONToYAML(m)
		if err == nil {
			_, err = fmt.Fprintf(w, "---\n%s", raw)
		}
		if err != nil {
			return fmt.Errorf("writing the Applications as YAML: %w", err)
		}
	}
	return nil
}

// WriteJSON writes the Applications as one List.
func WriteJSON(w io.Writer, a *Resolution) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", a.applicationManifests()})
	if err != nil {
		return fmt.Errorf("writing the Applications as JSON: %w", err)
	}
	return nil
}
