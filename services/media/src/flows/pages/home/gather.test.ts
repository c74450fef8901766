// Dropped files and folders, without a browser: the entries of folders are those that a browser would give.
import { expect, test } from 'vitest'

type Entry = { isDirectory: boolean; name: string }

const SCRIPT = new URL('../assets/home/gather.js', import.meta.url).href
const { droppedFiles, MOST_FILES, titleOf } = await import(SCRIPT)

const fileOf = (name: string) => ({
  ...{ isDirectory: false, name },
  file: (resolve: (file: object) => void) => resolve({ name }),
})

/** A folder, which browsers list in parts of at most a hundred. */
function folderOf(name: string, entries: Entry[]): Entry {
  const createReader = () => {
    const left = [...entries]
    return { readEntries: (resolve: (some: Entry[]) => void) => resolve(left.splice(0, 100)) }
  }
  return { isDirectory: true, name, createReader } as Entry
}

const drop = async (...entries: Entry[]) => {
  const items = entries.map((entry) => ({ webkitGetAsEntry: () => entry }))
  const isAccepted = ({ name }: Entry) => name.endsWith('.gif')
  const { files, otherTypes } = await droppedFiles(
    { items, files: entries.filter((each) => !each.isDirectory) },
    isAccepted,
  )
  return { names: files.map(({ name }: Entry) => name), otherTypes }
}

const numbered = (count: number) =>
  Array.from({ length: count }, (_, at) => fileOf(`${String(at).padStart(4, '0')}.gif`))

test('files are taken as they are, of whatever type: the service says why it refuses one', async () => {
  expect(await drop(fileOf('b.gif'), fileOf('a.txt'))).toEqual({ names: ['b.gif', 'a.txt'], otherTypes: 0 })
})

test('folders are read with all below them, in the order of names, without files of other types', async () => {
  const folder = folderOf('clips', [fileOf('b.gif'), folderOf('a', [fileOf('a.gif'), fileOf('.DS_Store')])])
  expect(await drop(folder, fileOf('c.txt'))).toEqual({ names: ['a.gif', 'b.gif', 'c.txt'], otherTypes: 1 })
})

test('a folder of more than a hundred files is read to its end', async () => {
  expect((await drop(folderOf('many', numbered(250)))).names).toHaveLength(250)
})

test('number and depth are bounded; one file too many shows that some are left out', async () => {
  expect((await drop(folderOf('many', numbered(2_000)))).names).toHaveLength(MOST_FILES + 1)
  let nested = folderOf('deepest', [fileOf('deep.gif')])
  for (let depth = 0; depth < 20; depth++) nested = folderOf('deeper', [nested])
  expect((await drop(nested, fileOf('top.gif'))).names).toEqual(['top.gif'])
})

test('a folder or file that cannot be read is left out', async () => {
  const createReader = () => ({ readEntries: (_: unknown, fail: () => void) => fail() })
  const unreadable = { isDirectory: true, name: 'closed', createReader } as Entry
  const lost = { ...fileOf('lost.gif'), file: (_: unknown, fail: () => void) => fail() }
  expect((await drop(unreadable, folderOf('open', [lost, fileOf('a.gif')]))).names).toEqual(['a.gif'])
})

test.for([
  ['Cat on a roof.gif', 'Cat on a roof'],
  ['v1.2 of the trailer.final.mp4', 'v1.2 of the trailer.final'],
  ['.gif', '.gif'],
  ['no ending', 'no ending'],
  ['two\nlines\u0007 and\ttabs.webm', 'two lines and tabs'],
  ['  .gif', ''],
  [`${'\u{1F431}'.repeat(300)}.mp4`, '\u{1F431}'.repeat(200)],
  [`${'\uFB1D'.repeat(150)}.mp4`, '\u05D9\u05B4'.repeat(100)],
] as const)('the name %j proposes a title that the service takes: %j', ([name, title]) => {
  expect(titleOf({ name })).toBe(title)
})
