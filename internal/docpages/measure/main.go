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
	if err := docpages.Measure(".", os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}
