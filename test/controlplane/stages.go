package controlplane

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ReadyDelayAnnotation on a pod says how long after its start the pod becomes ready, as a Go duration such as "20s",
// in the place of [Options.ReadyDelay]. A pod with a value that is no duration stays Pending; kwok's log says why.
const ReadyDelayAnnotation = "test.foresail.dev/ready-delay"

//go:embed stages/*.yaml
var ownStages embed.FS

// writeKwokConfig joins kwok's own stages, those of this package and extra ones into one configuration file.
func writeKwokConfig(path string, binaries Binaries, readyDelay time.Duration, extra []byte) error {
	var docs [][]byte
	for _, stage := range kwokStages {
		doc, err := os.ReadFile(filepath.Join(binaries.Dir, "stages", filepath.Base(stage)))
		if err != nil {
			return fmt.Errorf("kwok stage: %w", err)
		}
		docs = append(docs, doc)
	}
	for _, name := range []string{"stages/pod-start.yaml", "stages/pod-ready.yaml"} {
		doc, err := ownStages.ReadFile(name)
		if err != nil {
			return err
		}
		docs = append(docs, bytes.ReplaceAll(doc, []byte("${READY_DELAY}"), []byte(readyDelay.String())))
	}
	if len(extra) > 0 {
		docs = append(docs, extra)
	}
	return os.WriteFile(path, bytes.Join(docs, []byte("\n---\n")), 0o644)
}
