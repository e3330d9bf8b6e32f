package deps

// Layout says how the files at a source become manifests.
type Layout string

// The layouts. Detected looks at the folder: a kustomization before a chart
// before a plain folder. Anything, or a name that is not listed here, means
// that every file below the path may matter.
const (
	Detected  Layout = ""
	Kustomize Layout = "kustomize"
	Helm      Layout = "helm"
	Directory Layout = "directory"
	Anything  Layout = "anything"
)

// Source is one folder that a reader renders. Paths are relative to the
// tree's root.
type Source struct {
	Path       string
	Layout     Layout
	ValueFiles []string // Helm values files besides the chart's own, from the tree's root
	ValueGlobs []string // globs of such files, as Argo CD has them since 3.4

	// Options are files, from the tree's root, that change how the folder is rendered once they
	// exist. Their content isn't known here. With one of them everything below Path counts, and
	// every file that its strings name, from Path or (with a leading slash or $name/) from the
	// root.
	Options []string
	// InlineReadsFiles says that options given in place hold template text that may
	// read files of the chart by name, so that all of them count.
	InlineReadsFiles bool

	// For plain folders: whether subfolders count, and globs on the path below Path, in which *
	// crosses slashes and {a,b} are alternatives. Libs are the folders, from the root, in which
	// Jsonnet looks imports up.
	Recurse          bool
	Include, Exclude string
	Libs             []string
}

// Reader is what depends on files.
type Reader struct {
	ID      string // unique among the readers of an index
	Sources []Source
	Extra   []string // further files and folders, from the tree's root
	Globs   []string // of values files that no source of the tree is given
}

// Problem is something about a reader's files that could not be followed, so
// that its reads were widened.
type Problem struct {
	Reader  string
	File    string // from the tree's root
	Message string
}
