// Command measure measures figures of the documentation anew: it runs their commands and keeps what they write below
// docs/figures. Run it in the root of the repository, then `make docs`:
//
//	go run ./internal/docpages/measure paper others
package main

import (
	"fmt"
	"os"

	"github.com/foresail/foresail/internal/docpages"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := docpages.Measure(".", name); err != nil {
			fmt.Fprintf(os.Stderr, "measure: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}
