package render

import "errors"

// The limits of one rendering. They are far above what teams keep in one
// target, and low enough that a rendering which reaches one is a mistake or
// an attack.
const (
	// maxFile bounds one file, packed charts included. Bundles of custom
	// resource definitions have 4 MB.
	maxFile = 10 << 20
	// maxRead bounds the bytes of all reads together; a file read twice counts twice.
	maxRead = 128 << 20
	// maxReads bounds the number of looks at the tree.
	maxReads = 50_000
	// maxKustomizations bounds the kustomizations that are built, one that is
	// included twice counting twice: so they grow as 2ⁿ.
	maxKustomizations = 2_000
	// maxFiles bounds the files of one chart or plain folder.
	maxFiles = 10_000
	// maxLinks bounds a chain of symbolic links, as the kernel does.
	maxLinks = 40
	// maxUnpacked bounds what a chart's packed dependencies unpack to.
	maxUnpacked = 64 << 20
	// maxAliased bounds the nodes that a YAML document has once its aliases
	// are written out.
	maxAliased = 200_000
	// maxObjects bounds the objects of a target.
	maxObjects = 20_000
	// maxOutput bounds the manifests' bytes.
	maxOutput = 64 << 20
	// maxText bounds one string that a template builds.
	maxText = 16 << 20
	// maxSteps bounds the rounds of a chart's loops and the calls of its
	// templates together.
	maxSteps = 2_000_000
	// maxNested bounds templates within templates; Helm's own limit is 1,000.
	maxNested = 1_000
	// maxCount bounds what one call of until, untilStep or seq counts.
	maxCount = 1_000_000
	// maxSchemaDepth bounds the nesting of a values.schema.json: the
	// validator recurses over it.
	maxSchemaDepth = 200
	// maxMessage bounds an error's text; libraries quote whole documents.
	maxMessage = 4 << 10
)

// ErrLimit marks an error about input that is larger than one rendering may
// be: [errors.Is] tells.
var ErrLimit = errors.New("more than one rendering may take")
