package checkout

import (
	"fmt"
	"io/fs"
	"maps"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// knownInput is what a resolver is given of what is known beside a tree, for pipelines of that tree.
type knownInput struct {
	appset.Input
	// clusters are those that pipelines keep in files, by the files' paths.
	clusters map[string][]appset.Cluster
	// problems are files of clusters that can't be used. The clusters aren't known then.
	problems []appset.Problem
}

// readClusters reads the files of clusters that pipelines name, of the tree that has the pipelines.
// A flag's file and a running Argo CD that was asked for its clusters know better: then none is read.
func (k *knownInput) readClusters(tree fs.FS, pipes []*pipeline.Pipeline) {
	if k.knowsClusters() {
		return
	}
	k.clusters = map[string][]appset.Cluster{}
	for _, p := range pipes {
		file := p.Spec.Clusters
		if _, read := k.clusters[file]; file == "" || read {
			continue
		}
		clusters, err := appset.ReadClusters(tree, file)
		if err != nil {
			k.problems = append(k.problems, appset.Problem{File: p.File, Message: fmt.Sprintf("clusters: %v", err)})
		}
		k.clusters[file] = clusters
	}
}

func (k *knownInput) knowsClusters() bool {
	return k.Clusters != nil || k.ArgoCDs[k.Main].Clusters != nil
}

// forPipeline is the input for one of the pipelines, with the clusters that its file has.
func (k *knownInput) forPipeline(p *pipeline.Pipeline) appset.Input {
	in := k.Input
	in.Pipeline = p
	k.addClusters(&in, p)
	return in
}

// addClusters gives an input the clusters that a pipeline keeps in a file.
func (k *knownInput) addClusters(in *appset.Input, p *pipeline.Pipeline) {
	clusters := k.clusters[p.Spec.Clusters]
	if clusters == nil {
		return
	}
	in.Clusters = clusters
	if main, connected := in.ArgoCDs[in.Main]; connected {
		main.Clusters = clusters
		in.ArgoCDs = maps.Clone(in.ArgoCDs)
		in.ArgoCDs[in.Main] = main
	}
}
