// Words of the pages: a table for each subject, with every sentence in each language. Mails have words of their own
// (../adapters/mail/built-in). A further language is an entry here, which then no table lacks, or it does not compile.

/** Languages of the pages, which are those of the built-in mails. */
export const LANGUAGES = ['en', 'de'] as const
export type Language = (typeof LANGUAGES)[number]

/** Sentences of one subject by language. Plain text: `html` escapes it. */
export type Table<Words> = Readonly<Record<Language, Words>>

/** Declares a table. The English sentences say which there are. */
export const inEachLanguage = <Words>(table: { en: Words } & Record<Language, NoInfer<Words>>): Table<Words> => table

/** Fills holes such as `{name}` in one pass: a value may hold braces. */
export const fill = (sentence: string, values: Readonly<Record<string, string | number>>): string =>
  sentence.replaceAll(/\{(\w+)\}/g, (hole, name: string) => String(values[name] ?? hole))
