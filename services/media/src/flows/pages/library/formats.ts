// Numbers, lengths and times in the reader's language.
import type { Language } from '../../../words/language.ts'

export type Formats = ReturnType<typeof createFormats>

const made = new Map<Language, Formats>()

/** Made at the first page in a language: an idle service keeps none. */
export function formatsOf(language: Language): Formats {
  const formats = made.get(language) ?? createFormats(language)
  made.set(language, formats)
  return formats
}

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const

const SPANS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

function createFormats(language: Language) {
  const whole = new Intl.NumberFormat(language)
  const tenths = new Intl.NumberFormat(language, { maximumFractionDigits: 1 })
  const percent = new Intl.NumberFormat(language, { style: 'percent' })
  const units = UNITS.map(
    (unit) => new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: 1 }),
  )
  const moment = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
  const day = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeZone: 'UTC' })
  const spans = { hour: unitOf(language, 'hour'), day: unitOf(language, 'day') }
  const relative = new Intl.RelativeTimeFormat(language)
  return {
    number: (value: number): string => whole.format(value),
    percent: (value: number): string => percent.format(value),
    bytes: (value: number): string => {
      const step = value < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(value) / 3))
      return units[step]?.format(value / 1000 ** step) ?? ''
    },
    /** `4.1 s`, and from a minute on `1:04`. */
    length: (seconds: number): string => {
      const rounded = Math.round(seconds)
      if (rounded < 60) return `${tenths.format(seconds)} s`
      return `${Math.floor(rounded / 60)}:${String(rounded % 60).padStart(2, '0')}`
    },
    hours: (count: number): string => spans.hour.format(count),
    days: (count: number): string => spans.day.format(count),
    day: (date: Date): string => day.format(date),
    /** Time with its zone: the server does not know the reader's. */
    moment: (date: Date): string => `${moment.format(date)} UTC`,
    /** `in 3 days`. */
    until: (date: Date, now: Date): string => {
      const seconds = (date.getTime() - now.getTime()) / 1000
      const [unit, length] = SPANS.find(([, span]) => seconds >= span) ?? ['minute', 60]
      return relative.format(Math.max(1, Math.floor(seconds / length)), unit)
    },
  }
}

const unitOf = (language: Language, unit: string) =>
  new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' })
