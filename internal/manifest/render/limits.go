package render

import "errors"

// The limits of one rendering. They are far above what teams keep in one
// target, and low enough that a rendering which reaches one is a mistake or
// an attack.
const (
	// MaxFileBytes bounds one file, packed charts included. Bundles of custom
	// resource definitions have 4 MB.
	MaxFileBytes = 10 << 20
	// maxReadBytes bounds the bytes of all reads together; a file read twice counts twice.
	maxReadBytes = 128 << 20
	// maxAccesses bounds the number of looks at the tree.
	maxAccesses = 50_000
	// maxKustomizations bounds the kustomizations that are built, one that is
	// included twice counting twice: so they grow as 2ⁿ.
	maxKustomizations = 2_000
	// maxFiles bounds the files of one chart or plain folder.
	maxFiles = 10_000
	// maxLinks bounds a chain of symbolic links, as the kernel does.
	maxLinks = 40
	// maxUnpackedBytes bounds what a chart's packed dependencies unpack to.
	maxUnpackedBytes = 64 << 20
	// maxAliasedNodes bounds the nodes that a YAML document has once its aliases
	// are written out.
	maxAliasedNodes = 200_000
	// maxObjects bounds the objects of a target.
	maxObjects = 20_000
	// maxOutputBytes bounds the manifests' bytes.
	maxOutputBytes = 64 << 20
	// maxTextBytes bounds one string that a template builds.
	maxTextBytes = 16 << 20
	// maxSteps bounds the rounds of a chart's loops and the calls of its
	// templates together.
	maxSteps = 2_000_000
	// maxTemplateDepth bounds templates within templates; Helm's own limit is 1,000.
	maxTemplateDepth = 1_000
	// maxCount bounds what one call of until, untilStep or seq counts.
	maxCount = 1_000_000
	// maxSchemaDepth bounds the nesting of a values.schema.json: the
	// validator recurses over it.
	maxSchemaDepth = 200
	// maxMessageBytes bounds an error's text; libraries quote whole documents.
	maxMessageBytes = 4 << 10
)

// ErrLimit marks an error about input that is larger than one rendering may
// be: [errors.Is] tells.
var ErrLimit = errors.New("more than one rendering may take")
