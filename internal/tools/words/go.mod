module github.com/foresail/foresail/internal/tools/words

go 1.26.0
