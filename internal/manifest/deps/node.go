package deps

// nodeRole says what a node of the graph stands for.
type nodeRole uint8

const (
	roleReader        nodeRole = iota // arg: the reader's ID
	roleKustomization                 // of the folder dir
	roleChart                         // of the folder dir
	roleEverything                    // below the folder dir
	roleDirectory                     // of the plain folder dir; arg: its options
	roleJsonnet                       // the file dir; arg: where its imports are looked up
	roleValues                        // the Helm values file dir
	roleValueGlob                     // the Helm values files below the folder dir that the glob arg matches
	rolePluginConfig                  // the plugin configuration arg of the kustomization in the folder dir
	rolePluginConfigs                 // the folder arg of plugin configurations of the one in dir
)

// nodeKey identifies a node. Everything below it is the same however a reader gets there, so every
// folder is followed once.
type nodeKey struct {
	role nodeRole
	dir  string
	arg  string
}

// nodeResult is what one node reads by itself, and the nodes that it uses.
type nodeResult struct {
	files    []string // there or not, folders that were read included
	children []nodeKey
	rules    []rule
	remotes  []string
	problems []Problem // without a reader
	traits   traits
}
