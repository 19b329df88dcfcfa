// The media types of files by their suffix.

/** The same as in `credence.client.files.media_types`.
 * @type {Record<string, string | undefined>} */
const MEDIA_TYPES = {
  ".csv": "text/csv",
  ".tsv": "text/tab-separated-values",
  ".tab": "text/tab-separated-values",
  ".json": "application/json",
  ".jsonl": "application/x-ndjson",
  ".ndjson": "application/x-ndjson",
  ".txt": "text/plain",
  ".parquet": "application/vnd.apache.parquet",
  ".arrow": "application/vnd.apache.arrow.stream",
  ".arrows": "application/vnd.apache.arrow.stream",
  ".feather": "application/vnd.apache.arrow.file",
  ".npz": "application/x-npz",
  ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  ".xls": "application/vnd.ms-excel",
  ".ods": "application/vnd.oasis.opendocument.spreadsheet",
};

const UNKNOWN = "application/octet-stream"; // the service finds out what it is

const suffix = (/** @type {string} */ name) => (name.match(/\.[^.]+$/) || [""])[0].toLowerCase();

/** The headers of a request whose body is the file.
 * @param {string} name
 * @returns {Record<string, string>} */
export function headersFor(name) {
  const inner = suffix(name) === ".gz" ? MEDIA_TYPES[suffix(name.slice(0, -3))] : undefined;
  if (inner) return { "Content-Type": inner, "Content-Encoding": "gzip" };
  return { "Content-Type": MEDIA_TYPES[suffix(name)] || UNKNOWN };
}
