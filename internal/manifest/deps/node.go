package deps

// role says what a node of the graph stands for.
type role uint8

const (
	roleReader        role = iota // arg: the reader's ID
	roleKustomization             // of the folder dir
	roleChart                     // of the folder dir
	roleEverything                // below the folder dir
	roleManifests                 // of the plain folder dir; arg: its options
	roleJsonnet                   // the file dir; arg: where its imports are looked up
	roleValues                    // the Helm values file dir
	roleConfig                    // the plugin configuration arg of the kustomization in the folder dir
	roleConfigs                   // the folder arg of plugin configurations of the one in dir
)

// key identifies a node. What hangs below it is the same for whoever gets
// there, so every folder is followed once.
type key struct {
	role role
	dir  string
	arg  string
}

// found is what one node reads by itself, and the nodes that it uses.
type found struct {
	files    []string // there or not, folders that were looked at included
	children []key
	rules    []rule
	remotes  []string
	problems []Problem // without a reader
	traits   traits
}
