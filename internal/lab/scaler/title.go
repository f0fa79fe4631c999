package scaler

// titles are what reports call the scalers.
var titles = map[string]string{
	"hpa-cpu":           "HPA on CPU",
	"keda":              "HPA or KEDA",
	"paper":             "the paper's autoscaler",
	"foresail-total":    "Foresail",
	"foresail-load":     "Foresail, by the load of a pod",
	"foresail-replicas": "Foresail, by replicas",
	"foresail-direct":   "Foresail, without an HPA",

	"clairvoyant":          "best possible",
	"instant":              "knows the present load",
	"instant/hpa-defaults": "knows the present load, through an HPA",

	"hpa-cpu/same-behavior":          "HPA on CPU with Foresail's behavior",
	"keda/same-behavior":             "HPA or KEDA with Foresail's behavior",
	"foresail-total/hpa-defaults":    "Foresail, with an HPA's default behavior",
	"foresail-load/hpa-defaults":     "Foresail, by the load of a pod, with an HPA's default behavior",
	"foresail-replicas/hpa-defaults": "Foresail, by replicas, with an HPA's default behavior",

	"keda/yesterday": "KEDA, with yesterday's load as well",
	"keda/last-week": "KEDA, with last week's load as well",
}

// Title returns what reports call a scaler, by its name.
func Title(name string) string { return titles[name] }
