package serve

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/foresail/foresail/internal/docpages"
)

// TestFlagTablesAreGenerated compares the tables of flags in the pages with the flags of run, or writes them (`make docs`).
func TestFlagTablesAreGenerated(t *testing.T) {
	groups := newRunOptions().flagGroups()
	for _, table := range []struct{ page, section, group string }{
		{"operating.md", "flags-general", groupRun},
		{"operating.md", "flags-cluster", groupCluster},
		{"operating.md", "flags-apiservice", groupAPI},
		{"objectmetric.md", "flags-custom-metrics", groupCustom},
		{"forwarding.md", "flags-forwarding", groupForward},
		{"operating.md", "flags-samples", groupSamples},
		{"operating.md", "flags-worker-pools", groupNodePool},
		{"keda.md", "flags-keda", groupKEDA},
		{"extender.md", "flags-extender", groupExtender},
	} {
		rows := [][]string{{"flag", "default", ""}}
		groups.FlagSets[table.group].VisitAll(func(f *pflag.Flag) {
			rows = append(rows, []string{"`--" + f.Name + "`", printedDefault(f), f.Usage})
		})
		docpages.Verify(t, "../../../docs/"+table.page, table.section, docpages.Table(rows))
	}
}

// printedDefault returns the default of a flag as people write it.
func printedDefault(f *pflag.Flag) string {
	switch value := f.DefValue; f.Value.Type() {
	case "duration":
		if short, ok := strings.CutSuffix(value, "m0s"); ok {
			return short + "m"
		}
		return value
	case "stringSlice":
		return strings.Trim(value, "[]")
	default:
		return value
	}
}
