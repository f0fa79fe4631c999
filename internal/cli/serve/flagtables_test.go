package serve

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/foresail/foresail/internal/docpages"
)

// flagSections are the sections of docs/reference/flags.md, each with the flags of a group.
var flagSections = []struct{ title, group string }{
	{"General", groupRun},
	{"Towards the cluster", groupCluster},
	{"Registration of the metrics APIs", groupAPI},
	{"Object metrics", groupCustom},
	{"Another adapter behind Foresail", groupForward},
	{"Samples", groupSamples},
	{"Worker pools", groupNodePool},
	{"KEDA", groupKEDA},
	{"Scheduler extender", groupExtender},
}

// TestFlagReferenceIsGenerated compares the reference of flags with the flags of run, or writes it (`make docs`).
func TestFlagReferenceIsGenerated(t *testing.T) {
	groups := newRunOptions().flagGroups()
	var text strings.Builder
	for _, section := range flagSections {
		var entries []docpages.Entry
		groups.FlagSets[section.group].VisitAll(func(f *pflag.Flag) {
			entries = append(entries, docpages.Entry{Name: "--" + f.Name, Note: printedDefault(f), Text: f.Usage})
		})
		text.WriteString("\n## " + section.title + "\n\n" + docpages.List(entries))
	}
	docpages.Verify(t, "../../../docs/reference/flags.md", "flags", text.String())
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
	case "bool":
		if value == "false" {
			return ""
		}
		return value
	default:
		return value
	}
}
