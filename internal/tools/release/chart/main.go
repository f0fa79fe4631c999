// Command chart generates what follows from the values of the Helm chart in a folder: their JSON
// schema, and the table in its README.md.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func generate(folder string) error {
	defaults, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		return err
	}
	schema, table, err := describe(defaults)
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	readme := filepath.Join(folder, "README.md")
	page, err := withTable(readme, table)
	if err != nil {
		return err
	}
	if err := os.WriteFile(readme, page, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "values.schema.json"), schema, 0o644)
}
