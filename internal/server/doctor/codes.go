package doctor

// Code names what is found, for programs: it stays when the words change. docs/doctor.md has
// each with what it means and its cure.
type Code string

// The codes of what is well, one for each part.
const (
	CodeHost        Code = "host"
	CodeFile        Code = "file"
	CodeCredentials Code = "credentials"
	CodeRepository  Code = "repository"
	CodeHooks       Code = "hooks"
	CodeRules       Code = "rules"
	CodePipeline    Code = "pipeline"
	CodeTargets     Code = "targets"
	CodeArgoCD      Code = "argocd"
	CodeProbe       Code = "probe"
	CodeLogin       Code = "login"
	CodeSource      Code = "source"
	CodeCharts      Code = "charts"
	CodeRegistry    Code = "registry"
	CodeDiscover    Code = "discover"
)

// levels are the findings' levels by code.
var levels = map[Code]Level{
	CodeHost: OK, CodeFile: OK, CodeCredentials: OK, CodeRepository: OK, CodeHooks: OK, CodeRules: OK, CodePipeline: OK, CodeTargets: OK,
	CodeArgoCD: OK, CodeProbe: OK, CodeLogin: OK,
	CodeSource: OK, CodeCharts: OK, CodeRegistry: OK, CodeDiscover: OK,

	"git-unusable": Fail, "disk-low": Warn, "disk-full": Fail, "disk-unread": Unknown, "data-dir-closed": Fail, "clock-off": Fail,

	"file-invalid": Fail, "readers-missing": Warn, "address-plain": Warn, "address-local": Warn,

	"login-unreachable": Unknown, "login-issuer": Fail,

	"source-refused": Fail, "source-unread": Unknown, "charts-refused": Fail, "charts-unread": Unknown,

	"registry-unlisted": Fail, "registry-refused": Fail, "registry-missing": Fail, "registry-tags": Fail, "registry-plain": Fail,
	"registry-limited": Warn, "registry-unread": Unknown,
	"discover-refused": Fail, "discover-nothing": Warn, "discover-unmatched": Warn, "discover-unread": Unknown,

	"forge-unreachable": Unknown, "credentials-refused": Fail, "grant-missing": Fail, "token-ends": Warn, "token-ended": Fail,
	"calls-low": Warn, "calls-forecast": Warn,

	"repository-missing": Fail, "repository-unread": Unknown, "repository-renamed": Warn, "repository-archived": Fail,
	"repository-empty": Fail, "pulls-off": Fail, "write-missing": Fail, "admin-missing": Fail,
	"account-personal": Warn, "account-unread": Unknown,
	"app-unusable": Fail, "branch-other": Warn,

	"hook-missing": Warn, "hook-off": Fail, "hook-paused": Fail, "hook-events": Fail, "hook-events-late": Warn, "hook-format": Fail,
	"hook-insecure": Warn, "hook-secret": Fail, "hook-failing": Fail, "hook-several": Warn,
	"hook-address": Fail, "hook-forbidden": Fail, "hook-unread": Unknown,

	"branch-missing": Fail, "git-refused": Fail, "git-unread": Unknown,
	"rules-unread": Unknown, "rules-hidden": Unknown, "method-refused": Fail, "linear-history": Fail, "approvals-dropped": Warn,
	"merge-forbidden": Fail, "rules-bypassed": Fail, "rules-bypass-unsure": Warn, "signatures-required": Fail, "merges-signed": Unknown,
	"status-optional": Warn, "queue-unheard": Fail,
	"branches-open": Warn, "branches-closed": Fail, "branches-unread": Unknown,

	"probe-push": Fail, "probe-status": Fail, "probe-delete": Fail, "probe-unread": Unknown,

	"argocd-unreachable": Unknown, "argocd-kubeconfig": Fail, "argocd-refused": Fail, "argocd-forbidden": Fail, "argocd-limited": Warn,
	"argocd-token-ends": Warn, "argocd-token-ended": Fail,
	"argocd-version-unknown": Warn, "argocd-version-other": Warn, "argocd-health-hidden": Warn, "argocd-windows-closed": Warn,
	"argocd-empty": Warn,

	"pipeline-missing": Fail, "pipeline-proposed": Warn, "pipeline-invalid": Fail, "pipeline-names": Fail, "pipeline-odd": Warn, "commands-bare": Warn,
	"sets-missing": Fail, "argocd-unnamed": Fail,
	"targets-unresolved": Fail, "targets-none": Fail, "targets-unread": Unknown,
	"closed-long": Warn, "check-never-ran": Warn, "checks-unread": Unknown, "codeowners-unusable": Fail,
	"approvers-few": Fail, "approvers-scarce": Warn, "approver-own": Fail, "approver-unknown": Fail, "approver-reader": Fail,
	"team-unseen": Fail, "team-empty": Fail, "people-unread": Unknown,
}

// findings are those of one part.
type findings []Finding

// add adds one. A code that has no level is a mistake in this package, which its test finds.
func (f *findings) add(c Code, where, message, cure string) {
	*f = append(*f, Finding{Code: c, Level: levels[c], Where: where, Message: message, Cure: cure})
}

// addOK adds that a part is well, unless something else was found since n findings.
func (f *findings) addOK(n int, c Code, where, message string) {
	if len(*f) == n {
		f.add(c, where, message, "")
	}
}
