import type { Sharp, SharpOptions } from "sharp";

/** An image, with its size as people see it: turned as its camera was held. */
export interface Image {
  readonly bytes: Buffer;
  readonly contentType: string;
  readonly width: number;
  readonly height: number;
}

/** Formats that every model with eyes reads. The library's other loaders are locked: the bytes come from strangers. */
const formats: Readonly<Record<string, string>> = {
  jpeg: "image/jpeg",
  png: "image/png",
  gif: "image/gif",
  webp: "image/webp",
};
const loaders = ["Jpeg", "Png", "Nsgif", "Webp"].map((format) => `VipsForeignLoad${format}Buffer`);

/** 50 megapixels: a small file that would unpack to more is refused. */
const options: SharpOptions = { limitInputPixels: 50_000_000, failOn: "none" };

/** Models make images smaller than this before they look; what they are sent is paid for by its size. */
const modelSide = 1_568;
const modelBytes = 1_000_000;
/** Width that clients show in a timeline. */
const thumbnailWidth = 800;
const thumbnailHeight = 600;

let library: Promise<(bytes: Buffer) => Sharp> | undefined;

/** Loaded with the first image: it is large, and most conversations have none. */
const open = async (bytes: Buffer): Promise<Sharp> => {
  library ??= import("sharp").then(({ default: sharp }) => {
    sharp.cache(false);
    sharp.concurrency(1);
    sharp.block({ operation: ["VipsForeignLoad"] });
    sharp.unblock({ operation: loaders });
    return (input) => sharp(input, options);
  });
  return (await library)(bytes);
};

/** Looks at the head of an image; undefined for what is none of the kinds above, or broken. */
export const readImage = async (bytes: Buffer): Promise<Image | undefined> => {
  try {
    const { format, autoOrient } = await (await open(bytes)).metadata();
    const contentType = formats[format];
    return contentType === undefined ? undefined : { bytes, contentType, ...autoOrient };
  } catch {
    return undefined;
  }
};

/** The image as a model is sent it: as it is, or smaller. undefined if it cannot be drawn. */
export const forModel = async (image: Image): Promise<Image | undefined> =>
  Math.max(image.width, image.height) <= modelSide && image.bytes.length <= modelBytes
    ? image
    : shrink(image, modelSide, modelSide);

/** A smaller one for an image that is larger than what clients show; undefined where it needs none. */
export const thumbnail = async (image: Image): Promise<Image | undefined> =>
  image.width <= thumbnailWidth && image.height <= thumbnailHeight
    ? undefined
    : shrink(image, thumbnailWidth, thumbnailHeight);

const shrink = async ({ bytes }: Image, width: number, height: number): Promise<Image | undefined> => {
  try {
    const { data, info } = await (await open(bytes))
      .autoOrient()
      .resize({ width, height, fit: "inside", withoutEnlargement: true })
      .flatten({ background: "white" })
      .jpeg({ quality: 85 })
      .toBuffer({ resolveWithObject: true });
    return { bytes: data, contentType: "image/jpeg", width: info.width, height: info.height };
  } catch {
    return undefined;
  }
};
