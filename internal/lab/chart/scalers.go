package chart

import "strings"

// scalers have one look in all charts: what reacts is warm, what forecasts is cool, and bounds are grey.
var scalers = map[string]Style{
	"hpa-cpu":           {Color: Vermilion, Width: 1.5},
	"keda":              {Color: Orange, Width: 1.5},
	"paper":             {Color: Purple, Width: 1.5},
	"foresail-total":    {Color: Blue, Width: 2.2},
	"foresail-load":     {Color: SkyBlue, Width: 1.5},
	"foresail-replicas": {Color: Black, Width: 1.5},
	"foresail-direct":   {Color: Green, Width: 1.5},
	"clairvoyant":       {Color: Grey, Width: 1.2, Dash: []float64{1, 2}},
	"instant":           {Color: Grey, Width: 1.2, Dash: []float64{6, 2}},
}

// Scaler returns how lines of a scaler look, by its name, in every chart; ok is false of one that is not known. A variation
// of a scaler, NAME/HOW, looks as that does, but dashed.
func Scaler(name string) (look Style, ok bool) {
	base, _, varied := strings.Cut(name, "/")
	look, ok = scalers[base]
	if varied {
		look.Dash = []float64{5, 3}
	}
	return look, ok
}
