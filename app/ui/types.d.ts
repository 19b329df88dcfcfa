// Types that the dashboard's scripts share: globals of the page, and the JSON that the service sends.
// Only the type checker reads this file: see .ci/javascript.

declare var htmx: {
  ajax(method: string, url: string | null, options: object): Promise<void>;
  trigger(target: Element | string, event: string): void;
};
declare var Plotly: { react(place: HTMLElement, data: object[], layout: object, config: object): unknown; purge(place: HTMLElement): void };
declare var Charts: { show(place: HTMLElement, figure: Figure): void; read(part: ParentNode): void; maps(): Promise<void> };

/** A cell of a table of data. */
type Value = string | number | boolean | null;
type Row = Record<string, Value>;
/** The content of an element of the page. Numbers are rounded, null is empty. */
type Content = Node | Value | undefined;
type TableRow = Content[] | { cells: Content[]; class: string | null };
/** Name, value, and the class of the line. */
type Fact = [name: string, value: Content, kind?: string];

/** A figure without colours, as plotly takes it. `meta` of a trace is the role that charts.js colours. */
interface Figure {
  data: Trace[];
  layout: Record<string, any>;
}
type Trace = Record<string, any>;

/** A problem document, RFC 9457. */
interface Problem {
  title?: string;
  detail?: string;
  errors?: { path: string; message: string }[];
}

interface Feature {
  name: string;
  type: string;
  typical: Value;
  levels?: Value[];
  min?: number | string;
  max?: number | string;
  shape?: number[];
  is_year: boolean;
}

/** A stored variant of a version, smallest pruning first. */
interface Variant {
  prune: number;
  bytes: number;
  num_weights: number;
  scores: Record<string, number | undefined>;
}

/** The data of a prediction form, made by `form_data` in prediction_form.py. */
interface Question {
  model: string;
  version: number;
  task: "regression" | "classification" | "forecasting" | "language_model";
  target: string;
  classes: Value[] | null;
  features: Feature[];
  variants: Variant[];
  max_samples: number;
  forecast: { time: string; key: string | null };
  history: Row[];
  future: Row[];
}

/** Records, columns by name, or texts. */
type Inputs = Row[] | Record<string, Value[]> | string[];
/** What errors cost; a text is refused by the service at its field. */
interface Costs {
  matrix?: Value[][];
  over?: Value;
  under?: Value;
  abstain?: Value;
}
interface PredictBody {
  model: string;
  version: string;
  inputs?: any;
  samples?: number;
  prune?: number;
  intervals?: number[];
  abstain_above?: Value;
  set_level?: number;
  exceeds?: Value[];
  density?: { points: number };
  costs?: Costs;
  [option: string]: unknown;
}

interface Interval {
  kind: "credible" | "conformal" | "adaptive";
  level: number;
  adapted_level?: number;
  lower: (number | null)[];
  upper: (number | null)[];
}
/** A set per row, the most probable class first. */
interface ClassSets {
  kind: "credible" | "conformal";
  level: number;
  classes: Value[][];
}
interface Parts {
  aleatoric: number[];
  epistemic: number[];
  total: number[];
}
interface Decisions {
  action: Value[];
  expected_cost: (number | null)[];
  abstain?: boolean[];
  value_of_information: (number | null)[];
  value_of_model_information?: (number | null)[];
}
/** Why a row is unlike those of training; `text` says it in words. */
interface Reason {
  column: string | null;
  code: string;
  text: string;
}
/** The members that responses of all tasks have. */
interface AnyAnswer {
  samples: number;
  notes?: string[];
  sampler: string;
  timings_ms: { compute: number; total: number };
  out_of_distribution?: boolean[] | null;
  ood_score?: number[] | null;
  reasons?: Reason[][] | null;
  abstained?: boolean[] | null;
  decisions?: Decisions | null;
}
/** Of forecasts also that it is above the threshold at some step so far. */
interface Exceedance {
  threshold: number;
  probability: number[];
  any_above?: number[];
}
/** Sums from a forecast's first step to each. */
interface Sums {
  mean: (number | null)[];
  median: (number | null)[];
  intervals: Interval[];
  exceeds?: Exceedance[];
}
/** Of the sum over several series: at each step, and up to each. */
interface SeriesTotals {
  steps: Sums;
  sums: Sums;
}
interface GroupTotals extends SeriesTotals {
  group: string;
}
interface Totals extends Sums {
  series?: SeriesTotals | null;
  groups?: GroupTotals[] | null;
}
interface RegressionAnswer extends AnyAnswer {
  mean: number[];
  median: number[];
  variance: Parts;
  intervals: Interval[];
  mc_error: (number | null)[] | null;
  exceeds?: Exceedance[];
  density?: { kind: "density" | "probability"; values: number[][]; density: number[][]; atoms: { value: number; probability: number[] }[] };
}
interface ClassificationAnswer extends AnyAnswer {
  labels: Value[];
  classes: Value[];
  sets: ClassSets[];
  probabilities: number[][];
  entropy: Parts;
  variance: { epistemic: number[][] };
  mc_error: (number | null)[][] | null;
}
interface ForecastAnswer extends RegressionAnswer {
  times: string[];
  series?: string[] | null;
  totals?: Totals | null;
  paths: number;
}
interface TextAnswer extends AnyAnswer {
  next_tokens: { token: string; probability: number }[][];
  log_likelihood: number[];
  perplexity: number[];
  entropy: Parts;
}

/** Rows × features; of the mean of classes rows × features × classes. */
interface ContributionParts {
  mean: (number | number[])[][];
  aleatoric: number[][];
  epistemic: number[][];
}
interface Contributions extends ContributionParts {
  features: string[];
  base: { mean: number | number[] | null; aleatoric: number | null; epistemic: number | null };
  standard_error: ContributionParts;
}
/** With `explain`. */
interface ExplainedAnswer {
  labels?: Value[];
  classes?: Value[];
  contributions?: Contributions;
}

/** What a page shows of a response. `isUnreliable`: its only row is out of distribution. `isFlagged` is per row. `isSeries`: its picture is part of the page. */
interface Digest {
  isUnreliable?: boolean | null;
  reasons?: string[];
  portrait?: HTMLElement | null;
  headers: string[];
  rows: Content[][];
  isFlagged: boolean[];
  legend?: string[];
  facts: Fact[];
  summary: string;
  isSeries?: boolean;
  draw?: () => void;
  file: string;
}

/** A row of a regression, for a strip. A bound that is null is infinite. */
interface StripRow {
  mean: number;
  aleatoric: number;
  total: number;
  lower: number | null;
  upper: number | null;
}
