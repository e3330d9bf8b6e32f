package server

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"gopkg.in/yaml.v3"
)

var (
	descPattern   = regexp.MustCompile(`fqName: "(liftlock_[a-z_]+)".*variableLabels: \{([^}]*)\}`)
	metricPattern = regexp.MustCompile(`(liftlock_[a-z_]+)(?:\{([^}]*)\})?`)
	labelPattern  = regexp.MustCompile(`([a-z_]+)\s*[=!]`)
	byPattern     = regexp.MustCompile(`by \(([^)]*)\)`)
)

// TestMonitoringKnowsTheMetrics holds that the alert rules and the dashboard ask for metrics
// and labels that there are, and that the rules are ones that Prometheus takes.
func TestMonitoringKnowsTheMetrics(t *testing.T) {
	known := listMetrics(t)
	for from, expressions := range map[string][]string{"alerts.yaml": readAlerts(t), "dashboard.json": readDashboard(t)} {
		if len(expressions) < 10 {
			t.Errorf("%s has %d expressions", from, len(expressions))
		}
		for _, e := range expressions {
			for _, problem := range checkExpression(e, known) {
				t.Errorf("%s: %s: %s", from, e, problem)
			}
		}
	}
	if got := checkExpression(`sum by (city) (rate(liftlock_reverts_total{planet="x"}[5m])) > liftlock_made_up`, known); len(got) != 3 {
		t.Errorf("what is wrong isn't found: %q", got)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		return // the rules' own syntax is checked where Prometheus is installed
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "../../deploy/monitoring/alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPageHasTheMetrics holds that docs/monitoring.md lists every metric with its labels, and no
// other. In a row of several, the first has the labels.
func TestPageHasTheMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	known := listMetrics(t)
	for row := range strings.Lines(string(page)) {
		if !strings.HasPrefix(row, "- `liftlock_") {
			continue
		}
		for i, m := range metricPattern.FindAllStringSubmatch(row, -1) {
			labels, is := known[m[1]]
			if !is {
				t.Errorf("there is no metric %s, or it is there twice", m[1])
			} else if documented := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' }); i == 0 && !slices.Equal(documented, labels) {
				t.Errorf("%s has the labels %v, and documented are %v", m[1], labels, documented)
			}
			delete(known, m[1])
		}
	}
	for name := range known {
		t.Errorf("%s isn't documented", name)
	}
}

// listMetrics lists the server's metrics with their labels.
func listMetrics(t *testing.T) map[string][]string {
	s := newTestServer(t, "")
	descs := make(chan *prometheus.Desc)
	go func() {
		s.metrics.registry.Describe(descs)
		close(descs)
	}()
	known := map[string][]string{}
	for d := range descs {
		if m := descPattern.FindStringSubmatch(d.String()); m != nil {
			known[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	return known
}

// checkExpression lists what an expression asks for that there isn't.
func checkExpression(expression string, known map[string][]string) (problems []string) {
	all := metricPattern.FindAllStringSubmatch(expression, -1)
	if len(all) == 0 {
		return []string{"it asks for no metric of Liftlock's"}
	}
	for _, m := range all {
		name := m[1]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, is := strings.CutSuffix(name, suffix); is && known[base] != nil {
				name = base
			}
		}
		labels, is := known[name]
		if !is {
			problems = append(problems, "there is no metric "+m[1])
			continue
		}
		wanted := labelPattern.FindAllStringSubmatch(m[2], -1)
		for _, by := range byPattern.FindAllStringSubmatch(expression, -1) {
			for _, label := range strings.Split(by[1], ",") {
				wanted = append(wanted, []string{"", strings.TrimSpace(label)})
			}
		}
		for _, w := range wanted {
			if !slices.Contains(labels, w[1]) && (w[1] != "le" || name == m[1]) {
				problems = append(problems, m[1]+" has no label "+w[1])
			}
		}
	}
	return problems
}

func readAlerts(t *testing.T) (expressions []string) {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s doesn't say what it means and what to do", r.Alert)
			}
			expressions = append(expressions, r.Expr)
		}
	}
	return expressions
}

func readDashboard(t *testing.T) (expressions []string) {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("the panel %s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	return expressions
}
